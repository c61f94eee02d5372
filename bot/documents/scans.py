"""Reads the pages of a scanned PDF with a model that sees. The text is stored as a document."""

import asyncio
from base64 import b64decode
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from bot.documents.formats import DocumentRefused
from bot.documents.isolated import ParserFailed, parse
from memory.documents.chunking import Section
from memory.message import Picture

_MAX_PAGES = 5
_MAX_PIXELS = 2_000_000
_MAX_PAGE_CHARS = 8_000
_MAX_KEPT = 8
_PARSER = Path(__file__).with_name("pdf_pictures.py")
_PARSER_S = 30
_PARSER_CPU_S = 12
_PARSER_MB = 320

ReadPicture = Callable[[Picture], Awaitable[str | None]]
"""Returns the text of a page, None if the model cannot see; raises `ModelError`."""


@dataclass(frozen=True, slots=True)
class ScannedPages:
    """What was read: a section for each page with text, their numbers, and how many there are."""

    sections: tuple[Section, ...]
    numbers: tuple[int, ...]
    count: int


class ScanReader:
    """Reads the first pages. It keeps the newest few results in memory.

    A turn may start again after its file was stored. The model would then read other words, and
    the same file would replace itself.
    """

    def __init__(self, read: ReadPicture) -> None:
        self._read = read
        self._kept: dict[str, ScannedPages] = {}

    async def pages(self, file_id: str, content: bytes) -> ScannedPages:
        """Return what the first pages say; raise `DocumentRefused` or `ModelError`."""
        if file_id not in self._kept:
            found = await self._pages(content)
            while len(self._kept) >= _MAX_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[file_id] = found
        return self._kept[file_id]

    async def _pages(self, content: bytes) -> ScannedPages:
        count, pictures = await _pictures(content)
        texts: list[str | None] = []
        if pictures:  # the first page alone tells whether the model sees
            texts.append(await self._read(pictures[0][1]))
        if texts and texts[0] is not None:
            texts += await asyncio.gather(*(self._read(picture) for _, picture in pictures[1:]))
        read = {
            number: text.strip()[:_MAX_PAGE_CHARS]
            for (number, _), text in zip(pictures, texts, strict=False)
            if text and text.strip()
        }
        if not read:
            raise DocumentRefused("no_text")
        sections = (Section(text, f"page {number}") for number, text in read.items())
        return ScannedPages(tuple(sections), tuple(read), count)


async def _pictures(content: bytes) -> tuple[int, list[tuple[int, Picture]]]:
    """Return how many pages a PDF has, and the first of them that are pictures, by their number.

    They have high detail whatever the setting is for photos: with less, small text is not legible.
    Raise `DocumentRefused`.
    """
    limits = (_MAX_PAGES, _MAX_PIXELS, _PARSER_MB, _PARSER_CPU_S)
    try:
        answer = await parse(_PARSER, limits, content, _PARSER_S)
    except ParserFailed:
        raise DocumentRefused("no_text") from None
    if "refused" in answer:
        raise DocumentRefused("no_text")
    return answer["count"], [
        (
            page["page"],
            Picture(
                0, b64decode(page["jpeg"]), "image/jpeg", page["width"], page["height"], "high"
            ),
        )
        for page in answer["pages"]
    ]
