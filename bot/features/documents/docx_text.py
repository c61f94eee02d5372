"""Reads the text of a Word file, in a process of its own: `docx_text.py CHARACTERS MB SECONDS`.

Each heading begins a section. A row of a table becomes a line.
"""

import io
from collections.abc import Iterator

import docx
from docx.table import Table, _Cell
from docx.text.paragraph import Paragraph

from bot.parsing.answers import Sections, answer_sections, open_zip


def _add(content: bytes, sections: Sections, memory_mb: int) -> None:
    open_zip(content, memory_mb)
    document = docx.Document(io.BytesIO(content))
    try:
        styles = [*document.styles]
    except OSError:  # some programs write none, and the library would open a file with its own
        styles = []
    # Ids, because to look up the style of each paragraph would take most of the time.
    headings = {
        style.style_id for style in styles if (style.name or "").startswith(("Heading", "Title"))
    }
    for block in document.iter_inner_content():
        if isinstance(block, Table):
            for row in block.rows:
                sections.add_row(" ".join(_texts(cell)) for cell in _once(row.cells))
            continue
        text = block.text
        if block.paragraph_format.element.style in headings and text.strip():
            sections.begin(text)
        sections.add(text)


def _once(cells: tuple[_Cell, ...]) -> Iterator[_Cell]:
    """Yield each cell; one that spans columns stands several times in its row."""
    previous = None
    for cell in cells:
        if cell is not previous:
            yield cell
        previous = cell


def _texts(cell: _Cell) -> Iterator[str]:
    for block in cell.iter_inner_content():
        if isinstance(block, Paragraph):
            yield block.text
        else:
            for row in block.rows:
                for inner in _once(row.cells):
                    yield from _texts(inner)


if __name__ == "__main__":
    answer_sections(_add)
