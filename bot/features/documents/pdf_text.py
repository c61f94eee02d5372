"""Reads the text of a PDF, in a process of its own: `pdf_text.py PAGES CHARACTERS MB SECONDS`.

Anybody may send a PDF, and some are made to fill the memory or to take forever; pypdf has limits of
its own besides those of the process. It writes `{"pages": [text, ...]}`.
"""

import io

import pypdf.filters  # noqa: F401 - pypdf would load it later, when no file can be opened
from pypdf import PdfReader
from pypdf.errors import DependencyError

from bot.parsing.answers import NotRead, answer


def _read(content: bytes, max_pages: int, max_chars: int) -> dict[str, object]:
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
    pages: list[str] = []
    left = max_chars
    for page in reader.pages:
        text = page.extract_text()
        left -= len(text)
        if left < 0:
            raise NotRead("too_long")
        pages.append(text)
    return {"pages": pages}


if __name__ == "__main__":
    answer(_read)
