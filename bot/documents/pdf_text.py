"""The text of a PDF, read in a process of its own: `pdf_text.py PAGES CHARACTERS MB SECONDS`.

PDFs come from strangers, and some are made to fill the memory or never to end. So this runs
without the bot's secrets, under limits that the system enforces, and is killed when it takes too
long; in front of that stand pypdf's own limits. Reads the file from standard input; writes one JSON
object, `{"pages": [...]}` or `{"refused": "..."}`. Imports nothing of the bot.
"""

import codecs
import io
import json
import logging
import os
import resource
import sys
from contextlib import suppress

import pypdf.filters  # noqa: F401 - else loaded late, when nothing can be opened any more
from pypdf import PdfReader
from pypdf.errors import DependencyError

_NICENESS = 5
"""The bot goes first on a machine that both share."""
_ENCODINGS = (
    *("ascii", "charmap", "latin-1", "utf-8", "utf-16", "utf-16-be", "utf-16-le"),
    *("gbk", "gb2312", "gb18030", "cp932", "cp950"),
)
"""What pypdf asks for by name."""


def main(max_pages: int, max_chars: int, memory_mb: int, cpu_s: int) -> None:
    """Answer on standard output; whatever goes wrong, the file is called damaged."""
    os.nice(_NICENESS)
    _limit(resource.RLIMIT_AS, memory_mb * 2**20)
    _limit(resource.RLIMIT_CPU, cpu_s)
    _load_encodings()
    # Nothing more is opened from here on: neither what other processes show of themselves, whose
    # user is ours, nor a connection.
    _limit(resource.RLIMIT_NOFILE, 3)
    logging.disable()  # what it complains of is told by the answer
    answer: dict[str, object]
    try:
        answer = _read(sys.stdin.buffer.read(), max_pages, max_chars)
    except Exception:  # noqa: BLE001 - the fence around a parser of strangers' files
        answer = {"refused": "damaged"}
    sys.stdout.write(json.dumps(answer))


def _read(content: bytes, max_pages: int, max_chars: int) -> dict[str, object]:
    reader = PdfReader(io.BytesIO(content))
    try:
        # Many files are encrypted without a password, only to forbid printing.
        if reader.is_encrypted and not reader.decrypt(""):
            return {"refused": "encrypted"}
        count = len(reader.pages)
    except DependencyError:  # a cipher that would need another library
        return {"refused": "encrypted"}
    if count > max_pages:
        return {"refused": "too_long"}
    pages: list[str] = []
    left = max_chars
    for page in reader.pages:
        text = page.extract_text()
        left -= len(text)
        if left < 0:
            return {"refused": "too_long"}
        pages.append(text)
    return {"pages": pages}


def _load_encodings() -> None:
    """Load what a PDF may name, while files can still be opened."""
    for name in _ENCODINGS:
        codecs.lookup(name)


def _limit(what: int, most: int) -> None:
    with suppress(OSError, ValueError):  # a system that has no such limit
        resource.setrlimit(what, (most, most))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
