"""Long text in parts that Telegram takes: at most 4096 UTF-16 units and 100 entities each.

A cut falls where a reader would put the page down, and never drops a word. Pure functions of text
and legal entities; knows nothing of Markdown.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, takewhile

from bot.reply.parts import Entity, Part

MAX_UTF16 = 4096
MAX_ENTITIES = 100

# Best first; these must fill at least half of a part, a space may come earlier.
_BREAKS = (("\n\n",), ("\n",), (". ", "! ", "? ", "… ", "؟ ", "。", "！", "？"))
_SPACES = (" ", "\t", "\n")
_BLANK = re.compile(r"\s*+")
_VIRAMA = 9  # the combining class of the signs that join Indic consonants
_LONGEST_CLUSTER = 64  # code points; beyond it somebody plays with combining marks


def split(text: str, entities: Sequence[Entity] = ()) -> tuple[Part, ...]:
    """Return parts in order, none of them blank; `entities` are legal and ordered."""
    return tuple(_Splitter(text, _units(text), entities).parts())


def _units(text: str) -> Sequence[int]:
    """Return the UTF-16 offset of each code point, and of the end."""
    if not text or max(text) <= "\uffff":
        return range(len(text) + 1)
    return list(accumulate((1 + (char > "\uffff") for char in text), initial=0))


@dataclass(frozen=True, slots=True)
class _Splitter:
    """One text on its way into parts. Positions are code points, entities UTF-16 units."""

    text: str
    units: Sequence[int]
    entities: Sequence[Entity]

    def parts(self) -> Iterator[Part]:
        start, begun = 0, 0
        still_open: list[Entity] = []
        while start < len(self.text):
            start = self._without_blank_lines(start)
            # What can touch this part: what the last one left open, what begins in its room.
            later = self._begun_before(self.units[start] + MAX_UTF16 + 1)
            here = [
                one
                for one in (*still_open, *self.entities[begun:later])
                if one.end > self.units[start]
            ]
            cut = self._cut(start, here)
            text = self.text[start:cut].rstrip()
            if any(map(_is_visible, text)):
                yield Part(text, tuple(self._clipped(here, start, start + len(text))))
            begun = self._begun_before(self.units[cut])
            still_open = [one for one in here if one.offset < self.units[cut] < one.end]
            start = cut

    def _without_blank_lines(self, start: int) -> int:
        """Return where the first line after `start` begins that is not blank."""
        blank = _BLANK.match(self.text, start)
        return max(start, self.text.rfind("\n", start, blank.end() if blank else start) + 1)

    def _begun_before(self, unit: int) -> int:
        """Return how many entities begin before `unit`."""
        return bisect_left(self.entities, unit, key=lambda one: one.offset)

    def _cut(self, start: int, here: Sequence[Entity]) -> int:
        """Return where the part that begins at `start` ends, always further on."""
        limit = self._limit(start, here)
        if limit == len(self.text):
            return limit
        cut = _cluster_start(self.text, self._break(start, limit), start)
        for pre in self._kept_whole(start, here):
            block = self._position(pre.offset)
            if block < cut < self._position(pre.end):
                return block
        return cut

    def _limit(self, start: int, here: Sequence[Entity]) -> int:
        end = self.units[start] + MAX_UTF16
        if len(here) > MAX_ENTITIES:
            end = min(end, here[MAX_ENTITIES].offset)
        return bisect_right(self.units, end) - 1

    def _break(self, start: int, limit: int) -> int:
        half = (start + limit) // 2
        for marks in _BREAKS:
            if end := self._last_end(marks, half, limit):
                return end
        return self._last_end(_SPACES, start + 1, limit) or limit

    def _last_end(self, marks: Sequence[str], start: int, limit: int) -> int:
        """Return where the last of `marks` ends, 0 when there is none."""
        found = [(self.text.rfind(mark, start, limit), len(mark)) for mark in marks]
        return max(at + length if at >= 0 else 0 for at, length in found)

    def _kept_whole(self, start: int, here: Sequence[Entity]) -> Iterator[Entity]:
        """Yield the code blocks after `start` that fit into one part."""
        for entity in here:
            is_block = entity.type == "pre" and entity.length <= MAX_UTF16
            if is_block and entity.offset > self.units[start]:
                yield entity

    def _clipped(self, here: Sequence[Entity], start: int, end: int) -> Iterator[Entity]:
        first, last = self.units[start], self.units[end]
        for entity in here:
            offset, stop = max(entity.offset, first), min(entity.end, last)
            if offset < stop and self._covers_words(offset, stop):
                yield replace(entity, offset=offset - first, length=stop - offset)

    def _covers_words(self, offset: int, end: int) -> bool:
        return not self.text[self._position(offset) : self._position(end)].isspace()

    def _position(self, unit: int) -> int:
        return bisect_left(self.units, unit)


def _is_visible(char: str) -> bool:
    return not char.isspace() and unicodedata.category(char) not in ("Cc", "Cf")


def _cluster_start(text: str, cut: int, start: int) -> int:
    """Move a cut back to the start of the character that a reader sees there, if it has one.

    The parts of the Unicode text segmentation rules (UAX 29) that chat text meets: combining marks,
    Indic conjuncts, emoji joined by ZWJ, skin tones, tags, flags.
    """
    for at in range(cut, max(start, cut - _LONGEST_CLUSTER), -1):
        if not _joins(text, at, start):
            return at
    return cut


def _joins(text: str, at: int, start: int) -> bool:
    """Say whether `text[at]` is shown as one with what stands before it, from `start` on."""
    if at >= len(text):
        return False
    char, before = text[at], text[at - 1]
    if before == "\n":
        return False
    if before == "\u200d" or unicodedata.combining(before) == _VIRAMA or char in "\u200c\u200d":
        return True
    if _is_flag_letter(char):
        return sum(1 for _ in takewhile(_is_flag_letter, reversed(text[start:at]))) % 2 == 1
    is_tone_or_tag = "\U0001f3fb" <= char <= "\U0001f3ff" or "\U000e0020" <= char <= "\U000e007f"
    return is_tone_or_tag or unicodedata.category(char) in ("Mn", "Mc", "Me")


def _is_flag_letter(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def with_line(parts: Sequence[Part], line: Part) -> tuple[Part, ...]:
    """Return parts with a line of ours below the last one, or behind it where there is no room."""
    *before, last = parts
    shift = _units(last.text)[-1] + 2
    is_long = shift + _units(line.text)[-1] > MAX_UTF16
    if is_long or len(last.entities) + len(line.entities) > MAX_ENTITIES:
        return (*parts, line)
    moved = (replace(entity, offset=entity.offset + shift) for entity in line.entities)
    text = f"{last.text}\n\n{line.text}"
    return (*before, replace(last, text=text, entities=(*last.entities, *moved)))
