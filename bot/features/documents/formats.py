"""From a file's content to its sections, with the formats that are read.

Plain text and Markdown are read here, all other formats in a process of their own. Nothing else is
opened, whatever a file's name says.
"""

import asyncio
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Literal

from bot.parsing.answers import NotRead
from bot.parsing.processes import HERE, Parser, parse
from memory.documents import Section

Format = Literal["text", "markdown", "pdf", "docx", "pptx", "xlsx", "csv", "html", "epub"]
_OFFICE = "application/vnd.openxmlformats-officedocument"
_OPEN_TEXT = "application/vnd.oasis.opendocument.text"
_NAMED: dict[Format, tuple[str, ...]] = {
    "text": (
        *(".txt", ".text", ".log", ".json", ".xml", ".yaml", ".yml", ".srt"),
        *("text/plain", "application/json", "application/xml"),
    ),
    "markdown": (".md", ".markdown", "text/markdown", "text/x-markdown"),
    "pdf": (".pdf", "application/pdf"),
    "docx": (".docx", f"{_OFFICE}.wordprocessingml.document", ".odt", _OPEN_TEXT),
    "pptx": (".pptx", f"{_OFFICE}.presentationml.presentation"),
    "xlsx": (".xlsx", f"{_OFFICE}.spreadsheetml.sheet"),
    "csv": (".csv", ".tsv", "text/tab-separated-values", "text/csv", "text/comma-separated-values"),
    "html": (".html", ".htm", ".xhtml", "text/html", "application/xhtml+xml"),
    "epub": (".epub", "application/epub+zip"),
}
_FORMATS = {name: format_ for format_, names in _NAMED.items() for name in names}
"""By the suffix of a file's name, and by its MIME type, which has a slash."""
SUFFIXES = frozenset(name for name in _FORMATS if "/" not in name)

_HEADING = re.compile(r"^#{1,6}[ \t]([^\n]+)", re.MULTILINE)
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_MAX_HEADING_CHARS = 80
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_SIGN_IN_A_WORD = r"[^\W\d_][^\x00-\x7f\w’–—…·\xad«»“”][^\W\d_]|"
_LEGACY = {
    "cp1252": re.compile(
        _SIGN_IN_A_WORD + r"[^\W\d_A-Za-z]{3}|[ÐÝÞðýþ]|[¹³]\w|£[A-Za-z]|õ(?!e)|[èÈ][aeiou]"
    ),
    "cp1254": re.compile(_SIGN_IN_A_WORD + r"[^\W\d_A-Za-zÇĞİÖŞÜçğıöşüÂÎÛâîû]"),
    "cp1251": re.compile(
        _SIGN_IN_A_WORD
        + r"[^\W\d_A-Za-zЀ-ӿ]|[а-џ][Ѐ-Я]|[A-Za-z][Ѐ-ӿ]|[Ѐ-ӿ][A-Za-z]|\A(?:[^Ѐ-Я]+|[^а-џ]+)\Z"
    ),
}
"""How Windows saves text of Western Europe, Turkish, and Russian, each with a pattern that correct
text in it never matches. Any other encoding is refused: wrong letters are worse than none."""
_SAMPLE_BYTES = 40_000
_MAX_BYTES = 64 * 2**20
_MAX_BYTES_A_CHAR = 8  # in a parser's answer, with the names of many short sections
_MIN_ANSWER_BYTES = 2**16


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a file is read, and how much time, processor and memory a parser gets."""

    pages: int = 300
    chars: int = 500_000
    parser_s: float = 60
    parser_cpu_s: int = 8
    parser_mb: int = 320


async def read_sections(content: bytes, format_: Format, limits: Limits) -> list[Section]:
    """Return the sections of a file in their order, at least one with text; raise `NotRead`.

    The caller limits how many files are read at once (`bot.turn.permits`).
    """
    if format_ in ("text", "markdown"):
        found = await asyncio.to_thread(_text, content, format_, limits)
    else:
        if format_ == "csv":
            content = await asyncio.to_thread(lambda: _decoded(content, limits).encode())
        parsed = (await _parsed(format_, content, limits))["sections"]
        found = await asyncio.to_thread(lambda: [Section(text, at) for at, text in parsed])
    if not any(section.text.strip() for section in found):
        raise NotRead("no_text")
    return found


def format_of(name: str, mime_type: str) -> Format:
    """Return the format that a file claims to have; raise `NotRead`."""
    type_ = mime_type.partition(";")[0].strip().lower()
    declared = _FORMATS.get(type_) if "/" in type_ else None  # a sender may claim the type ".pdf"
    if declared is None and type_.startswith("text/") and type_ != "text/rtf":
        declared = "text"  # such as code, or dates of a calendar
    by_name = _FORMATS.get(PurePath(name).suffix.lower())
    # Markdown is often declared as plain text, or with no type at all.
    found = by_name if declared in (None, "text") and by_name else declared
    if found is None:
        raise NotRead("type")
    return found


def _text(content: bytes, format_: Format, limits: Limits) -> list[Section]:
    text = _decoded(content, limits)
    if len(text) > limits.chars:
        raise NotRead("too_long")
    return _by_heading(text) if format_ == "markdown" else [Section(text)]


def _by_heading(text: str) -> list[Section]:
    """Return the sections of Markdown; the first one is the text before any heading."""
    headings = list(_HEADING.finditer(_FENCE.sub(lambda code: " " * len(code[0]), text)))
    edges = [*(heading.start() for heading in headings), len(text)]
    below = (
        Section(text[heading.start() : end], heading[1].strip(" \t#")[:_MAX_HEADING_CHARS])
        for heading, end in zip(headings, edges[1:], strict=True)
    )
    return [Section(text[: edges[0]]), *below]


def _decoded(content: bytes, limits: Limits) -> str:
    if b"\0" in content and content[:2] not in _UTF_16:
        raise NotRead("type")
    # No encoding that we read needs more than 4 bytes for a character.
    if len(content) > 4 * limits.chars:
        raise NotRead("too_long")
    encoding = "utf-16" if content[:2] in _UTF_16 else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        if encoding == "utf-16" or not content[: error.start].isascii():  # UTF-8 with a wrong byte
            raise NotRead("letters") from None
        text = _legacy(content, error.start)
    if "\0" in text:
        raise NotRead("type")
    return text


def _legacy(content: bytes, at: int) -> str:
    """Return a text in an encoding of Windows; all before this byte is ASCII. Raise `NotRead`."""
    sample = content[max(0, at - 1) : at + _SAMPLE_BYTES]  # a search of all would hold the loop
    for encoding, never in _LEGACY.items():
        with suppress(UnicodeDecodeError):
            if not never.search(sample.decode(encoding)):
                return content.decode(encoding)
    raise NotRead("letters")


async def _parsed(format_: Format, content: bytes, limits: Limits) -> dict[str, Any]:
    parser = Parser(
        (HERE if format_ == "html" else Path(__file__).parent) / f"{format_}_text.py",
        _MAX_BYTES,
        _MIN_ANSWER_BYTES + _MAX_BYTES_A_CHAR * limits.chars,
        limits.parser_mb,
        limits.parser_cpu_s,
        limits.parser_s,
    )
    pages = (limits.pages,) if format_ == "pdf" else ()
    return await parse(parser, content, *pages, limits.chars)
