"""Reads the text of an HTML file, in a process of its own: `html_text.py CHARACTERS MB SECONDS`.

Each heading begins a section. A row of a table becomes a line. The parser of HTML fetches nothing
and expands no entity that a file declares.
"""

import io
import re
import zipfile
from collections.abc import Mapping
from contextlib import suppress

from lxml import etree
from lxml.html import HTMLParser

from bot.parsing.answers import Sections, answer_sections, open_zip

_SKIPPED = frozenset(
    {"script", "style", "noscript", "template", "svg", "iframe", "nav", "head", "select"}
)
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_BLOCKS = _HEADINGS | {
    *("p", "div", "br", "hr", "li", "ul", "ol", "dl", "dt", "dd", "pre", "blockquote", "tr"),
    *("table", "caption", "section", "article", "header", "footer", "aside", "main", "figure"),
    *("figcaption", "address", "form", "body", "details", "summary"),
}
_CELLS = frozenset({"td", "th"})
_BLANKS = re.compile(r"\s+")
_TAG = re.compile(rb"</?([A-Za-z][A-Za-z0-9]*+)[^<>]*+>")
_END = re.compile(rb"</(?:body|html)\s*+>", re.IGNORECASE)  # the parser reads nothing after it
_STYLE = "concat(';', translate(@style, 'ABDEFHILNOPSTVYZ \t\n\r', 'abdefhilnopstvyz'))"
_HIDDEN = etree.XPath(
    "//template[not(@shadowrootmode)] | //noscript | /*/*//*["
    f"(@hidden or contains({_STYLE}, ';display:none') or contains({_STYLE}, ';visibility:hidden'))"
    " and not(@role='tabpanel' or @role='region' or @hidden='until-found' or math"
    f" or starts-with(@id, 'S:')) or (contains({_STYLE}, ';font-size:0')"
    f" and not(contains({_STYLE}, ';font-size:0.') or */@style or */@class or table))]"
)
"""Elements that people do not see; they are removed. These stay: tabs and folds that people open,
formulas beside their picture, what a script of React shows at once (its ids begin with "S:"), and
elements of the font size 0 whose children may have another one."""
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
"""In office files, another form of what stands before it."""
_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")


def add_html(sections: Sections, content: bytes, chapter: str = "") -> None:
    """Add the sections of an HTML file; `chapter` names the text before its first heading."""
    root = tree_of(content)
    if root is None:
        return
    title = " ".join((root.findtext("head/title") or "").split())
    sections.begin(title or chapter)
    _Reader(sections).read(root)


def xml_of(content: bytes) -> etree._Element:
    """Parse XML without expanding its entities and without loading anything.

    What an office file has twice, for older programs, is left out.
    """
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    root = etree.fromstring(transitional(content), parser)
    etree.strip_elements(root, _FALLBACK, with_tail=False)
    return root


def transitional(content: bytes) -> bytes:
    """Return XML with the namespaces of usual office files; "strict" files have others."""
    return _STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", content)


def opened_office_file(content: bytes, memory_mb: int) -> io.BytesIO:
    """Return an office file as libraries can read it: in a "strict" one they find nothing."""
    archive, written, links = open_zip(content, memory_mb), io.BytesIO(), "_rels/.rels"
    if links not in archive.namelist() or not _STRICT.search(archive.read(links)):
        return io.BytesIO(content)
    with zipfile.ZipFile(written, "w") as usual:
        for name in archive.namelist():
            usual.writestr(name, transitional(archive.read(name)))
    return written


def add_xml(sections: Sections, root: etree._Element, names: Mapping[str, str]) -> None:
    """Add the text of other XML; `names` calls its elements as HTML does, "span" what has text."""
    for element in root.iter("*"):
        name = names.get(element.tag)
        element.tag, element.text = name or "span", element.text if name == "span" else None
        element.tail = None  # white space between elements: an editor may have laid them out
    _Reader(sections).read(root)


def tree_of(content: bytes) -> etree._Element | None:
    """Return what an HTML file shows as a tree, None for an empty one.

    The parser ends at 2,048 open tags, and at a byte that the declared encoding does not have. Then
    it is read again: without most tags, so that hidden text shows, or with such bytes replaced.
    """
    content = _END.sub(b"", content)
    # A file that is no valid UTF-8 declares its encoding.
    encoding = "utf-8" if content.decode(errors="ignore").encode() == content else None
    # Without `huge_tree` it ends at 256 tags, and at a text or an attribute of 10 MB.
    parser = HTMLParser(encoding=encoding, remove_comments=True, remove_pis=True, huge_tree=True)
    root, read = etree.fromstring(content, parser), content
    whys = {error.type_name for error in parser.error_log}
    if "ERR_RESOURCE_LIMIT" in whys:
        read = _TAG.sub(_flat, content)
    elif "ERR_INVALID_ENCODING" in whys and root is not None:
        name = root.getroottree().docinfo.encoding or ""
        with suppress(LookupError, OSError):  # the latter: its codec was not imported in time
            name = "utf-8" if name.lower().startswith("utf") else name  # it is not UTF-16
            read = content.decode(name, "replace").encode()
    if read != content:
        return tree_of(read)
    for each in reversed(_HIDDEN(root)) if root is not None else ():
        each.clear(keep_tail=True)  # inner ones first: it walks through all that is left inside
    return root


def _flat(tag: re.Match[bytes]) -> bytes:
    name = tag[1].decode("ascii", "replace").lower()
    return tag[0] if name in (*_SKIPPED, "title") else b"<br>" if name in _BLOCKS else b" "


class _Reader:
    def __init__(self, sections: Sections) -> None:
        self._sections = sections
        self._words: list[str] = []
        self._row: list[str] = []
        self._open_cells = 0
        """More than one if a table stands in a cell; its text then belongs to the outer cell."""
        self._open_pre = 0

    def read(self, root: etree._Element) -> None:
        walk = etree.iterwalk(root, events=("start", "end"))
        for event, element in walk:
            tag = element.tag if isinstance(element.tag, str) else ""
            if event == "end":
                self._end(tag)
                self._open_pre -= tag == "pre"
                self._words.append(element.tail or "")
            elif tag in _SKIPPED or not tag:
                walk.skip_subtree()
            else:
                if tag in _BLOCKS or tag in _CELLS:
                    self._break()
                self._open_cells += tag in _CELLS
                self._open_pre += tag == "pre"
                self._words.append(element.text or "")
        self._end("tr")

    def _end(self, tag: str) -> None:
        if tag in _CELLS:
            self._open_cells -= 1
            if not self._open_cells:
                self._row.append(self._taken())
        elif tag in _BLOCKS:
            if tag in _HEADINGS and not self._open_cells and (heading := self._taken()):
                self._sections.begin(heading)
                self._words.append(heading)
            self._break()
        if tag == "tr" and not self._open_cells:
            self._sections.add_row(self._row)
            self._row = []

    def _break(self) -> None:
        """End the line; inside a cell, only separate the words."""
        if self._open_cells:
            self._words.append(" ")
        elif line := self._taken():
            self._sections.add(line)

    def _taken(self) -> str:
        text = "".join(self._words)
        self._words = []
        return text.strip("\n") if self._open_pre else _BLANKS.sub(" ", text).strip()


if __name__ == "__main__":
    answer_sections(lambda content, sections, _: add_html(sections, content))
