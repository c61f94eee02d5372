"""Reads the text of slides, in a process of its own: `pptx_text.py CHARACTERS MB SECONDS`.

Each slide is a section: its title, its texts and tables, and the notes of the speaker.
"""

import io
from collections.abc import Iterable, Iterator

import pptx
from pptx.shapes.autoshape import Shape
from pptx.shapes.base import BaseShape
from pptx.shapes.graphfrm import GraphicFrame
from pptx.shapes.group import GroupShape

from bot.parsing.answers import Sections, answer_sections, open_zip


def _add(content: bytes, sections: Sections, memory_mb: int) -> None:
    open_zip(content, memory_mb)
    for number, slide in enumerate(pptx.Presentation(io.BytesIO(content)).slides, start=1):
        title = slide.shapes.title
        named = f": {title.text_frame.text}" if title and title.text_frame.text.strip() else ""
        sections.begin(f"slide {number}{named}")
        for shape in _flat(slide.shapes):
            if isinstance(shape, GraphicFrame) and shape.has_table:
                for row in shape.table.rows:
                    sections.add_row(cell.text for cell in row.cells)
            elif isinstance(shape, Shape):
                sections.add(shape.text_frame.text)
        if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame):
            sections.add(notes.text)


def _flat(shapes: Iterable[BaseShape]) -> Iterator[BaseShape]:
    for shape in shapes:
        if isinstance(shape, GroupShape):
            yield from _flat(shape.shapes)
        else:
            yield shape


if __name__ == "__main__":
    answer_sections(_add)
