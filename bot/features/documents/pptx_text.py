"""Reads the text of slides, in a process of its own: `pptx_text.py CHARACTERS MB SECONDS`.

Each slide is a section: its title, its texts and tables, and the notes of the speaker.
"""

import posixpath
import zipfile

from lxml import etree

from bot.parsing.answers import Sections, answer_sections, open_zip
from bot.parsing.html_text import add_xml, xml_of

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_LINK = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_PARAGRAPH, _BREAK, _TEXT = f"{_A}p", f"{_A}br", f"{_A}t"
_TABLES = {f"{_A}tbl": "table", f"{_A}tr": "tr", f"{_A}tc": "td"}
_NAMES = {**_TABLES, _PARAGRAPH: "p", _BREAK: "br", _TEXT: "span"}
_BOOK, _NOTES = "ppt/presentation.xml", "ppt/notesSlides/"


def _add(content: bytes, sections: Sections, memory_mb: int) -> None:
    archive = open_zip(content, memory_mb)
    parts = _linked(archive, _BOOK)
    listed = xml_of(archive.read(_BOOK)).iter(f"{_P}sldId")
    for number, part in enumerate((parts[each.get(_LINK)] for each in listed), start=1):
        slide = xml_of(archive.read(part))
        titles = (_text(each) for each in _placeholders(slide, "title", "ctrTitle"))
        title = next(filter(None, titles), "")
        sections.begin(f"slide {number}: {title}" if title else f"slide {number}")
        add_xml(sections, slide, _NAMES)
        for linked in _linked(archive, part).values():
            if linked.startswith(_NOTES):
                for notes in _placeholders(xml_of(archive.read(linked)), "body"):
                    add_xml(sections, notes, _NAMES)


def _linked(archive: zipfile.ZipFile, part: str) -> dict[str | None, str]:
    """Return the names of the parts that a part refers to, by what it calls them."""
    folder, name = posixpath.split(part)
    links = xml_of(archive.read(f"{folder}/_rels/{name}.rels"))
    paths = ((link.get("Id"), posixpath.join(folder, link.get("Target", ""))) for link in links)
    return {id_: posixpath.normpath(path).strip("/") for id_, path in paths}


def _placeholders(slide: etree._Element, *kinds: str) -> list[etree._Element]:
    """Return the shapes of a slide that have such a role."""
    marks = (each for each in slide.iter(f"{_P}ph") if each.get("type") in kinds)
    return [shape for mark in marks for shape in mark.iterancestors(f"{_P}sp")]


def _text(shape: etree._Element) -> str:
    pieces = shape.iter(_PARAGRAPH, _BREAK, _TEXT)
    text = "".join((each.text or "") if each.tag == _TEXT else " " for each in pieces)
    return " ".join(text.split())


if __name__ == "__main__":
    answer_sections(_add)
