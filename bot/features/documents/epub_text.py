"""Reads the text of a book, in a process of its own: `epub_text.py CHARACTERS MB SECONDS`.

The chapters are read in the order of the book's spine, each like an HTML file.
"""

import posixpath
import zipfile
from collections.abc import Iterator
from urllib.parse import unquote

from bot.parsing.answers import NotRead, Sections, answer_sections, open_zip
from bot.parsing.html_text import add_html, xml_of

_PAGES = frozenset({"application/xhtml+xml", "text/html"})
_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"


def _add(content: bytes, sections: Sections, memory_mb: int) -> None:
    with open_zip(content, memory_mb, may_have_dtd=True) as book:
        names = frozenset(book.namelist())
        encryption = book.read(_ENCRYPTION) if _ENCRYPTION in names else b""
        encrypted = encryption.decode("utf-8", "replace")
        for number, name in enumerate(dict.fromkeys(_chapters(book)), start=1):
            if name in encrypted:  # other files are often encrypted: fonts
                raise NotRead("encrypted")
            if name in names:
                add_html(sections, book.read(name), f"chapter {number}")


def _chapters(book: zipfile.ZipFile) -> Iterator[str]:
    package_name = xml_of(book.read(_CONTAINER)).find(".//{*}rootfile").get("full-path")
    package = xml_of(book.read(package_name))
    listed = package.iterfind("{*}manifest/{*}item")
    pages = (item for item in listed if item.get("media-type") in _PAGES)
    files = {item.get("id"): unquote(item.get("href") or "") for item in pages}
    folder = posixpath.dirname(package_name)
    for entry in package.iterfind("{*}spine/{*}itemref"):
        if path := files.get(entry.get("idref")):
            yield posixpath.normpath(posixpath.join(folder, path))


if __name__ == "__main__":
    answer_sections(_add)
