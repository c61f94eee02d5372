"""From a file's content to the sections of a document: plain text, Markdown, PDF.

Nothing else is opened, whatever its name says. Fetching and storing are done elsewhere.
"""

import asyncio
import os
import re
import sys
from asyncio.subprocess import PIPE
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Literal

import orjson

from bot.documents.refusals import DocumentRefused
from memory.documents.chunking import Section

Format = Literal["text", "markdown", "pdf"]

_BY_SUFFIX: dict[str, Format] = {
    ".txt": "text",
    ".text": "text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".pdf": "pdf",
}
_BY_TYPE: dict[str, Format] = {
    "text/plain": "text",
    "text/markdown": "markdown",
    "text/x-markdown": "markdown",
    "application/pdf": "pdf",
}
SUFFIXES = frozenset(_BY_SUFFIX)

_HEADING = re.compile(r"^#{1,6}[ \t]([^\n]+)", re.MULTILINE)
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_HYPHEN = re.compile(r"(?<=[^\W\d_])-\n(?=[^\W\d_])")
_LINE_END = re.compile(r"(?<![.!?:;。！？\n])\n(?=[^\W\d_])")
_UNSPACED = "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]"
_UNSPACED_LINE_END = re.compile(rf"(?<={_UNSPACED})\n(?={_UNSPACED})")
_HEADING_CHARS = 80
_PDF_READER = Path(__file__).with_name("pdf_text.py")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a file is read, and what reading a PDF may take: time, processor, memory."""

    pages: int = 300
    chars: int = 500_000
    pdf_s: float = 20
    pdf_cpu_s: int = 8
    pdf_mb: int = 320


class Formats:
    """Reads files; how many at once is the caller's business (`bot.turn.permits`)."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    async def sections(self, content: bytes, format_: Format) -> list[Section]:
        """Return the sections of a file in their order; raise `DocumentRefused`."""
        if format_ == "pdf":
            found = await _pdf(content, self._limits)
        else:
            found = await asyncio.to_thread(_text, content, format_, self._limits)
        if not any(section.text.strip() for section in found):
            raise DocumentRefused("no_text")
        return found


def format_of(name: str, mime_type: str) -> Format:
    """Return what a file claims to be; raise `DocumentRefused`."""
    declared = _BY_TYPE.get(mime_type.partition(";")[0].strip().lower())
    by_name = _BY_SUFFIX.get(PurePath(name).suffix.lower())
    # Markdown is often declared as plain text, or as nothing in particular.
    found = by_name if declared in (None, "text") and by_name else declared
    if found is None:
        raise DocumentRefused("type")
    return found


def _text(content: bytes, format_: Format, limits: Limits) -> list[Section]:
    text = _decoded(content)
    if len(text) > limits.chars:
        raise DocumentRefused("too_long")
    return _by_heading(text) if format_ == "markdown" else [Section(text)]


def _decoded(content: bytes) -> str:
    """Return the text of UTF-8, or of UTF-16 that says so."""
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        raise DocumentRefused("letters") from None
    if "\0" in text:
        raise DocumentRefused("type")
    return text


def _by_heading(text: str) -> list[Section]:
    """Return what stands below each heading, the heading included."""
    without_code = _FENCE.sub(lambda fence: " " * len(fence[0]), text)
    headings = list(_HEADING.finditer(without_code))
    edges = [*(heading.start() for heading in headings), len(text)]
    below = (
        Section(text[heading.start() : end], heading[1].strip(" \t#")[:_HEADING_CHARS])
        for heading, end in zip(headings, edges[1:], strict=True)
    )
    return [Section(text[: edges[0]]), *below]


async def _pdf(content: bytes, limits: Limits) -> list[Section]:
    """Have a PDF read by `pdf_text` in a process of its own; raise `DocumentRefused`."""
    if b"%PDF-" not in content[:1024]:
        raise DocumentRefused("damaged")
    most = (limits.pages, limits.chars, limits.pdf_mb, limits.pdf_cpu_s)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", str(_PDF_READER), *map(str, most)),
        env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},  # and none of our secrets
        stdin=PIPE,
        stdout=PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(limits.pdf_s):
            written, _ = await process.communicate(content)
        answer = orjson.loads(written)
    except (TimeoutError, orjson.JSONDecodeError):
        raise DocumentRefused("damaged") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if "refused" in answer:
        raise DocumentRefused(answer["refused"])
    return [
        Section(_flowing(text), f"page {number}")
        for number, text in enumerate(answer["pages"], start=1)
    ]


def _flowing(text: str) -> str:
    """Return a page's text without the ends of lines that are not ends of sentences."""
    text = _UNSPACED_LINE_END.sub("", _HYPHEN.sub("", text))
    return _LINE_END.sub(" ", text)
