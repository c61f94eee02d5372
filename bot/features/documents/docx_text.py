"""Reads a Word or OpenDocument text, in a process of its own: `docx_text.py CHARACTERS MB SECONDS`.

Each heading begins a section. A row of a table becomes a line. Tracked changes count as accepted.
Notes and comments are in brackets where the text refers to them. Page headers of Word come before
the text, page footers after it, and a text box after its paragraph.
"""

import zipfile
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain

from lxml import etree

from bot.parsing.answers import NotRead, Sections, answer_sections, open_zip
from bot.parsing.html_text import add_html, add_xml, xml_of

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}t"
_BREAK, _HYPHEN, _ID, _VALUE = f"{_W}br", f"{_W}noBreakHyphen", f"{_W}id", f"{_W}val"
_MERGED, _SPAN = f"{_W}tcPr/{_W}vMerge", f"{_W}tcPr/{_W}gridSpan"
_TABLES = {f"{_W}tbl": "table", f"{_W}tr": "tr", f"{_W}tc": "td"}
_LINES = {"h1": "h1", f"{_W}p": "p", _BREAK: "br", f"{_W}cr": "br"}
_SPACES = (f"{_W}tab", f"{_W}ptab")
_TEXTS = dict.fromkeys((f"{_W}t", *_SPACES, _HYPHEN, _MATH), "span")
_LEFT_OUT = (f"{_W}del", f"{_W}moveFrom", f"{_W}rt")  # deleted, moved away, pronunciation
_WRAPPERS = (f"{_W}sdt", f"{_W}sdtContent", f"{_W}customXml", f"{_W}smartTag")
"""What may stand around blocks, rows, cells and texts: fields to fill in, and marks."""
_OPEN = {"h": "h1", "p": "p", "list-item": "li", "line-break": "br"}
_OPEN |= {"table": "table", "table-row": "tr", "table-cell": "td", "covered-table-cell": "td"}
_OPEN |= dict.fromkeys(("tracked-changes", "ruby-text", "desc"), "script")  # left out
"""Elements of an OpenDocument text, as HTML calls them; `desc` is about a picture."""


def _add(content: bytes, sections: Sections, memory_mb: int) -> None:
    document = open_zip(content, memory_mb)
    add = _add_open_document if "content.xml" in document.namelist() else _add_word
    add(document, sections)


def _add_word(document: zipfile.ZipFile, sections: Sections) -> None:
    headings = _headings(chain.from_iterable(_parts(document, "styles")))
    notes = {
        (f"{_W}{kind}Reference", note.get(_ID)): " ".join(map(_text, note))
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
        for table in root.iter(f"{_W}tbl"):
            _fill_merged_cells(table)
        for box in reversed([*root.iter(f"{_W}txbxContent")]):
            if (paragraph := next(box.iterancestors(f"{_W}p"), None)) is not None:
                paragraph.addnext(box)
        for element in root.iter("*"):
            if note := notes.pop((element.tag, element.get(_ID)), ""):
                element.tag, element.text = f"{_W}t", f" [{note}]"
            elif element.tag == f"{_W}pStyle" and element.get(_VALUE) in headings:
                heading = element.getparent().getparent()
                heading.tag = "h1"
                for line_end in heading.iter(_BREAK):
                    line_end.tag, line_end.text = f"{_W}t", " "
        add_xml(sections, root, _TABLES | _LINES | _TEXTS | {f"{_W}pPr": "script"})


def _add_open_document(document: zipfile.ZipFile, sections: Sections) -> None:
    """Add the text of a file that LibreOffice saved; notes and comments stand in brackets."""
    if b"encryption-data" in document.read("META-INF/manifest.xml"):
        raise NotRead("encrypted")
    root = next(xml_of(document.read("content.xml")).iter("{*}body"))
    for note in [*root.iter("{*}note", "{*}annotation")]:
        words, tail = " ".join(" ".join(note.itertext()).split()), note.tail
        note.clear()
        note.text, note.tail = f" [{words}]", tail
    for space in root.iter("{*}tab", "{*}s"):
        space.text = " "
    for element in root.iter("*"):
        element.tag = _OPEN.get(etree.QName(element).localname, "span")
    add_html(sections, etree.tostring(root, method="html", encoding="utf-8"))


def _headings(styles: Iterator[etree._Element]) -> set[str]:
    """Return the names of the styles of headings, and of all styles that are based on one."""
    headings, based_on = [], defaultdict[str | None, list[str]](list)
    for style in styles:
        own = style.get(f"{_W}styleId")
        name, base = (style.find(f"{_W}{each}") for each in ("name", "basedOn"))
        if base is not None:
            based_on[base.get(_VALUE)].append(own)
        if name is not None and name.get(_VALUE, "").lower().startswith(("heading", "title")):
            headings.append(own)
    for heading in headings:  # it grows meanwhile
        headings += based_on.pop(heading, ())
    return set(headings)


def _fill_merged_cells(table: etree._Element) -> None:
    """Copy the text of a cell that spans several rows into each of its rows."""
    above: dict[int, str] = {}
    for row in table.iterchildren(f"{_W}tr"):
        column = 0
        for cell in row.iterchildren(f"{_W}tc"):
            merged, span = cell.find(_MERGED), cell.find(_SPAN)
            if merged is None:
                above.pop(column, None)
            elif merged.get(_VALUE) == "restart":
                above[column] = _text(cell)
            else:
                etree.SubElement(cell, f"{_W}t").text = above.get(column)
            column += 1 if span is None else int(span.get(_VALUE, 1))


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
            root = xml_of(document.read(name))
            etree.strip_elements(root, *_LEFT_OUT, with_tail=False)
            etree.strip_tags(root, *_WRAPPERS)
            for mark in root.iter(*_SPACES, _HYPHEN):
                mark.text = " " if mark.tag in _SPACES else "-"
            yield root


if __name__ == "__main__":
    answer_sections(_add)
