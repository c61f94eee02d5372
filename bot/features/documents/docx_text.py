"""Reads the text of a Word file, in a process of its own: `docx_text.py CHARACTERS MB SECONDS`.

Each heading begins a section. A row of a table becomes a line. Tracked changes count as accepted.
Notes and comments are in brackets where the text refers to them. Page headers come before the text,
page footers after it.
"""

import zipfile
from collections.abc import Iterator
from itertools import chain

from docx.oxml.ns import qn
from lxml import etree

from bot.parsing.answers import NotRead, Sections, answer_sections, open_zip
from bot.parsing.html_text import add_xml, xml_of

_WORD = b"http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_STRICT = b"http://purl.oclc.org/ooxml/wordprocessingml/main"  # Word can save as "strict"
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}t"
_MERGED, _SPAN = (f"{qn('w:tcPr')}/{qn(name)}" for name in ("w:vMerge", "w:gridSpan"))
_TABLES = {qn("w:tbl"): "table", qn("w:tr"): "tr", qn("w:tc"): "td"}
_LINES = {"h1": "h1", qn("w:p"): "p", qn("w:br"): "br", qn("w:cr"): "br"}
_SPACES = tuple(map(qn, ("w:tab", "w:ptab")))
_TEXTS = dict.fromkeys((qn("w:t"), *_SPACES, qn("w:noBreakHyphen"), _MATH), "span")
_FORMATS = {qn("w:pPr"): "script"}
_LEFT_OUT = tuple(map(qn, ("w:del", "w:moveFrom", "w:rt")))  # deleted, moved away, pronunciation


def _add(content: bytes, sections: Sections, memory_mb: int) -> None:
    document = open_zip(content, memory_mb)
    headings = {
        style.get(qn("w:styleId"))
        for style in chain.from_iterable(_parts(document, "styles"))
        for name in style.iterfind(qn("w:name"))
        if name.get(qn("w:val"), "").lower().startswith(("heading", "title"))
    }
    notes = {
        (qn(f"w:{kind}Reference"), note.get(qn("w:id"))): " ".join(map(_text, note))
        for kind in ("footnote", "endnote", "comment")
        for note in chain.from_iterable(_parts(document, f"{kind}s"))
    }
    bodies = [*_parts(document, "document")]
    if not bodies:
        raise NotRead("damaged")
    # Each part of a document may have three headers and three footers: equal ones are read once.
    heads, feet = (
        {_text(each): each for each in _parts(document, kind)}.values()
        for kind in ("header", "footer")
    )
    for root in (*heads, *bodies, *feet):
        for table in root.iter(qn("w:tbl")):
            _fill_merged_cells(table)
        for element in root.iter("*"):
            if note := notes.pop((element.tag, element.get(qn("w:id"))), ""):
                element.tag, element.text = qn("w:t"), f" [{note}]"
            elif element.tag == qn("w:pStyle") and element.get(qn("w:val")) in headings:
                heading = element.getparent().getparent()
                heading.tag = "h1"
                for line_end in heading.iter(qn("w:br")):
                    line_end.tag, line_end.text = qn("w:t"), " "
        add_xml(sections, root, _TABLES | _LINES | _TEXTS | _FORMATS)


def _fill_merged_cells(table: etree._Element) -> None:
    """Copy the text of a cell that spans several rows into each of its rows."""
    above: dict[int, str] = {}
    for row in table.iterchildren(qn("w:tr")):
        column = 0
        for cell in row.iterchildren(qn("w:tc")):
            merged, span = cell.find(_MERGED), cell.find(_SPAN)
            if merged is not None and merged.get(qn("w:val")) != "restart":
                etree.SubElement(cell, qn("w:t")).text = above.get(column)
            else:
                above[column] = _text(cell)
            column += 1 if span is None else int(span.get(qn("w:val"), 1))


def _text(element: etree._Element) -> str:
    """Return the text of an element whose paragraphs stand on one line."""
    pieces = element.iter(*_TEXTS, *_LINES)
    text = "".join(" " if each.tag in _LINES else each.text or "" for each in pieces)
    return " ".join(text.split())


def _parts(document: zipfile.ZipFile, kind: str) -> Iterator[etree._Element]:
    """Yield all parts of a kind; Word for the web adds a number to the name: `document2.xml`."""
    for name in document.namelist():
        folder, _, part = name.partition("/")
        if folder and part.endswith(".xml") and part[:-4].rstrip("0123456789") == kind:
            root = xml_of(document.read(name).replace(_STRICT, _WORD))
            etree.strip_elements(root, *_LEFT_OUT, with_tail=False)
            for mark in root.iter(*_SPACES, qn("w:noBreakHyphen")):
                mark.text = " " if mark.tag in _SPACES else "-"
            yield root


if __name__ == "__main__":
    answer_sections(_add)
