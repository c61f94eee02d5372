"""Reads the text of a PDF, in a process of its own: `pdf_text.py PAGES CHARACTERS MB SECONDS`.

Anybody may send a PDF, and some are made to fill the memory or to take forever; pypdf has limits of
its own besides those of the process. Each page is a section, also one without text.
"""

import io
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pypdf.filters  # noqa: F401 - pypdf would load it later, when no file can be opened
from pypdf import PageObject, PdfReader
from pypdf.errors import DependencyError, PyPdfError
from pypdf.generic import NameObject, TextStringObject

from bot.parsing.answers import NotRead, answer

_BROKEN = (AttributeError, KeyError, TypeError, ValueError, PyPdfError)
_HYPHEN = re.compile(r"(?<=[^\W\d_])-\n(?=[^\W\d_])")
_LINE_END = re.compile(r"(?<![.!?:;。！？\n])\n(?=[^\W\d_])")
_UNSPACED = "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]"
_UNSPACED_LINE_END = re.compile(rf"(?<={_UNSPACED})\n(?={_UNSPACED})")


def _read(content: bytes, max_pages: int, max_chars: int) -> dict[str, object]:
    if b"%PDF-" not in content[:1024]:
        raise NotRead("damaged")
    reader = PdfReader(io.BytesIO(content))
    try:
        # Many files are encrypted without a password, only to forbid printing.
        if reader.is_encrypted and not reader.decrypt(""):
            raise NotRead("encrypted")
        count = len(reader.pages)
    except DependencyError:  # a cipher that would need another library
        raise NotRead("encrypted") from None
    if count > max_pages:
        raise NotRead("too_long")
    pages: list[tuple[str, str]] = []
    left = max_chars
    for number, page in enumerate(reader.pages, start=1):
        text = "\n- ".join([page.extract_text(), *filter(None, dict.fromkeys(_filled_in(page)))])
        left -= len(text)
        if left < 0:
            raise NotRead("too_long")
        flowing = _UNSPACED_LINE_END.sub("", _HYPHEN.sub("", text))
        pages.append((f"page {number}", _LINE_END.sub(" ", flowing)))
    return {"sections": pages}


def _filled_in(page: PageObject) -> Iterator[str]:
    """Yield the fields of a form with their values, and what somebody wrote onto the page."""
    with suppress(*_BROKEN):
        for each in page.annotations or ():
            with suppress(*_BROKEN):
                note = each.get_object()
                if note["/Subtype"] in ("/FreeText", "/Text"):
                    yield str(note.get("/Contents", "")).strip()
                elif note["/Subtype"] == "/Widget":
                    value = ", ".join(_values(note.get_inherited("/V")))
                    name = note.get_inherited("/TU") or note.get_inherited("/T")
                    yield value and f"{name}: {value}"


def _values(given: Any) -> Iterator[str]:
    """Yield texts and chosen names; a signature, whose form differs at each reading, has none."""
    for each in given if isinstance(given, list) else [given]:
        value = each.get_object()
        if isinstance(value, NameObject) and value != "/Off":
            yield value.removeprefix("/")
        elif isinstance(value, TextStringObject) and value:
            yield value


if __name__ == "__main__":
    answer(_read)
