"""Reads the text of slides, in a process of its own: `pptx_text.py CHARACTERS MB SECONDS`.

Each slide is a section: its title, its texts and tables, and the notes of the speaker.
"""

import pptx
from pptx.oxml.ns import qn

from bot.parsing.answers import Sections, answer_sections
from bot.parsing.html_text import add_xml, opened_office_file, xml_of

_NAMES = {"a:tbl": "table", "a:tr": "tr", "a:tc": "td", "a:p": "p", "a:br": "br", "a:t": "span"}


def _add(content: bytes, sections: Sections, memory_mb: int) -> None:
    file = opened_office_file(content, memory_mb)
    names = {qn(name): called for name, called in _NAMES.items()}
    for number, slide in enumerate(pptx.Presentation(file).slides, start=1):
        title = slide.shapes.title
        named = f": {title.text_frame.text}" if title and title.text_frame.text.strip() else ""
        sections.begin(f"slide {number}{named}")
        notes = slide.has_notes_slide and slide.notes_slide.notes_text_frame
        add_xml(sections, xml_of(slide.part.blob), names)
        if notes:
            sections.add(notes.text)


if __name__ == "__main__":
    answer_sections(_add)
