"""Shows a reply while it grows: paragraphs that are done are rendered once, not in each frame."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace

from bot.reply.fences import code_blocks
from bot.reply.parts import Entity, Part
from bot.reply.render import SHORT_CHARS, parsed
from bot.reply.split import split
from bot.reply.stable_prefix import settled
from bot.reply.utf16 import utf16_length

_PARAGRAPH = re.compile(r"\n[ \t]*\n(?=[^\W\d_])")
"""Where a paragraph begins with a letter, so that it belongs to no list, quote or table before."""


class GrowingReply:
    """One reply; a text that does not go on from the last one is rendered from its beginning.

    `source` is the Markdown of the last frame.
    """

    def __init__(self) -> None:
        self.source = self._done = ""
        self._shown = self._frame = Part("")

    async def frame(self, markdown: str) -> Part:
        """Return what is shown of an unfinished reply; it gives way only to more of a reply."""
        source = settled(markdown)
        if len(source) <= len(self.source):
            return self._frame
        self.source = source
        if not source.startswith(self._done):
            self._done, self._shown = "", Part("")
        rest = source[len(self._done) :]
        if done := _last_paragraph(rest):
            self._shown = _joined(self._shown, await _parsed(rest[: done.start()]))
            self._done, rest = self._done + rest[: done.end()], rest[done.end() :]
        shown = _joined(self._shown, await _parsed(rest))
        self._frame = next(iter(split(shown.text, shown.entities)), self._frame)
        return self._frame


def _last_paragraph(text: str) -> re.Match[str] | None:
    """Return the beginning of the last paragraph that is no code."""
    found = list(_PARAGRAPH.finditer(text))
    blocks = list(code_blocks(text)) if found else []
    outside = (
        each
        for each in reversed(found)
        if not any(block.start < each.start() < block.end for block in blocks)
    )
    return next(outside, None)


async def _parsed(source: str) -> tuple[str, Sequence[Entity]]:
    if len(source) <= SHORT_CHARS:
        return parsed(source)
    return await asyncio.to_thread(parsed, source)


def _joined(before: Part, parsed: tuple[str, Sequence[Entity]]) -> Part:
    text, entities = parsed
    text = text.rstrip("\n")
    if not (before.text and text):
        return Part(before.text or text, before.entities or tuple(entities))
    shift = utf16_length(before.text) + 2
    moved = (replace(entity, offset=entity.offset + shift) for entity in entities)
    return Part(f"{before.text}\n\n{text}", (*before.entities, *moved))
