"""Shows a reply while it grows: paragraphs that are done are rendered once, not in each frame.

Markdown is cut before whatever may still change: the last word, an open link or emphasis, a table.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.reply.parts import Entity, Part, utf16_length
from bot.reply.render import SHORT_CHARS, parsed
from bot.reply.split import code_blocks, split
from memory.text.sentences import character_start

_PARAGRAPH = re.compile(r"\n[ \t]*\n(?=[^\W\d_])")
"""Where a paragraph begins with a letter, so that it belongs to no list, quote or table before."""
_NOTHING = Part("")


@dataclass(slots=True, eq=False)
class GrowingReply:
    """One reply; a text that does not go on from the last one is rendered from its beginning."""

    source: str = ""  # the Markdown of the last frame
    _done: str = ""
    _shown: Part = _NOTHING
    _frame: Part = _NOTHING

    async def frame(self, markdown: str) -> Part:
        """Return what is shown of an unfinished reply; it gives way only to more of a reply."""
        source = settled(markdown)
        if len(source) <= len(self.source):
            return self._frame
        self.source = source
        if not source.startswith(self._done):
            self._done, self._shown = "", _NOTHING
        rest = source[len(self._done) :]
        found = list(_PARAGRAPH.finditer(rest))
        blocks = list(code_blocks(rest)) if found else []
        outside_code = (
            each
            for each in reversed(found)
            if not any(block.start < each.start() < block.end for block in blocks)
        )
        if done := next(outside_code, None):
            self._shown = _joined(self._shown, await _parsed(rest[: done.start()]))
            self._done, rest = self._done + rest[: done.end()], rest[done.end() :]
        shown = _joined(self._shown, await _parsed(rest))
        self._frame = next(iter(split(shown.text, shown.entities)), self._frame)
        return self._frame


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


_MAX_WORD = 32  # a longer run without a space is text of a script without spaces
_MAX_OPEN = 300  # a mark that is not closed within this many characters counts as text

_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_TABLE_LINE = re.compile(r"^[ \t>]*\|", re.MULTILINE)
_ONLY_MARKS = re.compile(r"(?:^|\n)[ \t]*(?:[#>*+=|~_.)-]|\d)+[ \t]*$")
_TOKEN = re.compile(
    r"""
    (?P<ticks> `+ )
  | (?P<link> \[ (?: \\. | [^\[\]\n] )* \] \( [^()\n]* (?: \([^()\n]*\) [^()\n]* )* \) )
  | (?P<open> !?\[ (?= [^\[\]]* \Z | [^\[\]\n]* \] (?: \( [^()]* )? \Z ) | \\[(\[] )
  | (?P<close> \\[)\]] )
  | \\.                                                  # an escaped character
  | (?P<mark> \*{1,3} | _{1,3} | ~~ | \|\| | \$\$? )
    """,
    re.VERBOSE,
)


def settled(markdown: str) -> str:
    """Return the longest safe beginning of an unfinished text; "" if there is none."""
    text = markdown[: _last_word(markdown)]
    begins = 0
    for block in code_blocks(text):
        if not block.is_closed:  # it goes up to its last whole line, and the renderer closes it
            end = text.rfind("\n")
            if text[block.code_start : max(end, 0)].strip():
                return text[:end]
            return _ONLY_MARKS.sub("", text[: block.start].rstrip()).rstrip()
        begins = block.end
    for blank in _BLANK_LINE.finditer(text, begins):
        begins = blank.end()
    text = text[: _first_open(text, begins)].rstrip()
    return _ONLY_MARKS.sub("", text).rstrip()


def _last_word(text: str) -> int:
    """Return where the last word begins that may not be whole."""
    space = max(text.rfind(" "), text.rfind("\n"))
    tail = text[space + 1 :]
    if len(tail) > _MAX_WORD and not tail.isascii():
        return character_start(text, len(text) - 1)
    return character_start(text, max(0, space))


def _first_open(text: str, begins: int) -> int:
    if table := _TABLE_LINE.search(text, begins):
        return table.start()
    still_open: dict[str, int] = {}
    in_code = ""
    for token in _TOKEN.finditer(text, begins):
        kind, mark = token.lastgroup, token[0]
        if in_code:
            if mark == in_code:
                in_code = ""
                still_open.pop(mark, None)
        elif kind == "ticks":
            in_code = mark
            still_open[mark] = token.start()
        elif kind == "open":
            still_open.setdefault("[", token.start())
        elif kind == "close":
            still_open.pop("[", None)
        elif kind == "mark":
            _toggle(still_open, text, token)
    near = [at for at in still_open.values() if len(text) - at <= _MAX_OPEN]
    return min(near, default=len(text))


def _toggle(still_open: dict[str, int], text: str, token: re.Match[str]) -> None:
    mark, start, end = token[0], token.start(), token.end()
    before, after = text[start - 1 : start], text[end : end + 1]
    if mark in still_open and before and not before.isspace():
        del still_open[mark]
    elif after and not after.isspace() and not before.isalnum():
        is_price = mark == "$" and after.isdigit()
        if not is_price:
            still_open.setdefault(mark, start)
