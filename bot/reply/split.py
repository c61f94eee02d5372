"""Cuts a long text into parts that Telegram takes: at most 4096 UTF-16 units and 100 entities each.

A cut falls between paragraphs, lines, sentences or words, and no word is lost. Pure functions of a
text and valid entities; they know nothing of Markdown.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from bot.reply.parts import Entity, Part, Parts, utf16_length
from memory.text.sentences import character_start, sentences

MAX_UTF16 = 4096
MAX_CAPTION_UTF16 = 1024
MAX_ENTITIES = 100

_BLANK = re.compile(r"\s*+")


def split(text: str, entities: Sequence[Entity] = (), max_utf16: int = MAX_UTF16) -> Parts:
    """Return parts in order, none of them blank; `entities` are valid and ordered."""
    units: Sequence[int] = range(len(text) + 1)
    if text and max(text) > "\uffff":
        units = list(accumulate((1 + (char > "\uffff") for char in text), initial=0))
    return tuple(_Splitter(text, units, entities, max_utf16).parts())


@dataclass(frozen=True, slots=True)
class _Splitter:
    """One text and its entities. Positions are code points; entities count UTF-16 units.

    `units` are the UTF-16 offsets of the code points, and of the end.
    """

    text: str
    units: Sequence[int]
    entities: Sequence[Entity]
    max_utf16: int

    def parts(self) -> Iterator[Part]:
        """Yield the parts; an entity that a cut divides goes on in the next part."""
        start, begun = 0, 0  # `begun` counts the entities that begin before the part
        offsets = [one.offset for one in self.entities]
        still_open: list[Entity] = []
        while start < len(self.text):
            # Where the first line begins that is not blank.
            blank = _BLANK.match(self.text, start)
            start = max(start, self.text.rfind("\n", start, blank.end() if blank else start) + 1)
            # Entities of this part: those that the last one left open, those that begin in it.
            later = bisect_left(offsets, self.units[start] + self.max_utf16 + 1)
            here = [
                one
                for one in (*still_open, *self.entities[begun:later])
                if one.end > self.units[start]
            ]
            cut = self._cut(start, here)
            text = self.text[start:cut].rstrip()
            if any(not c.isspace() and unicodedata.category(c) not in ("Cc", "Cf") for c in text):
                first, last = self.units[start], self.units[start + len(text)]
                shown = []
                for one in here:
                    offset, stop = max(one.offset, first), min(one.end, last)
                    covered = self.text[self._position(offset) : self._position(stop)]
                    if offset < stop and not covered.isspace():
                        shown.append(replace(one, offset=offset - first, length=stop - offset))
                yield Part(text, tuple(shown))
            begun = bisect_left(offsets, self.units[cut])
            still_open = [one for one in here if one.offset < self.units[cut] < one.end]
            start = cut

    def _cut(self, start: int, here: Sequence[Entity]) -> int:
        """Return where the part that begins at `start` ends; always behind `start`."""
        end = self.units[start] + self.max_utf16
        if len(here) > MAX_ENTITIES:
            end = min(end, here[MAX_ENTITIES].offset)
        limit = bisect_right(self.units, end) - 1
        if limit == len(self.text):
            return limit
        at = self._break(start, limit)
        cut = character_start(self.text, at, start)
        cut = cut if cut > start else at  # a part is never empty
        for entity in here:
            block = self._position(entity.offset)
            # A code block that fits into one part is kept whole.
            is_block = entity.type == "pre" and entity.length <= self.max_utf16
            if is_block and start < block < cut < self._position(entity.end):
                return block
        return cut

    def _break(self, start: int, limit: int) -> int:
        """Return the best place to cut. Only a cut between words may leave half a part unused."""
        half = (start + limit) // 2
        for mark in ("\n\n", "\n"):
            if (at := self.text.rfind(mark, half, limit)) >= 0:
                return at + len(mark)
        # One character more, so that a sentence that ends at the limit is seen to end there.
        *before, last = sentences(self.text[half : limit + 1])
        if before:
            return limit + 1 - len(last)
        space = max(self.text.rfind(space, start + 1, limit) for space in " \t\n")
        return space + 1 if space >= 0 else limit

    def _position(self, unit: int) -> int:
        return bisect_left(self.units, unit)


def with_line(parts: Sequence[Part], line: Part) -> Parts:
    """Add a line of ours, with its buttons, below the last part, or as a part if it is too long."""
    *before, last = parts
    is_caption = last.export_of or last.file is not None
    text = f"{last.text}\n\n{line.text}" if last.text else line.text
    shift = utf16_length(text) - utf16_length(line.text)
    is_long = utf16_length(text) > (MAX_CAPTION_UTF16 if is_caption else MAX_UTF16)
    if is_long or len(last.entities) + len(line.entities) > MAX_ENTITIES:
        return (*parts, line)
    moved = (replace(entity, offset=entity.offset + shift) for entity in line.entities)
    buttons = last.buttons or line.buttons
    return (*before, replace(last, text=text, entities=(*last.entities, *moved), buttons=buttons))


_LIST = r"(?:[ \t>]|[-*+][ \t]|\d+[.)][ \t])*"
_OPENING = re.compile(rf"^({_LIST})(`{{3,}}|~{{3,}})([^\n]*)", re.MULTILINE)
_CLOSING = re.compile(r"^[ \t>]*(`{3,}|~{3,})[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """One block: `text[start:end]` with its fences, `text[code_start:code_end]` without them."""

    start: int
    end: int
    code_start: int
    code_end: int
    before: str  # before the opening fence in its line: indentation, list and quote marks
    info: str  # behind the fence, as a rule the language
    is_closed: bool  # else it ends with the text


def code_blocks(text: str) -> Iterator[CodeBlock]:
    """Yield the code blocks in order."""
    at = 0
    while opening := _OPENING.search(text, at):
        closings = _CLOSING.finditer(text, opening.end())
        closing = next((each for each in closings if each[1].startswith(opening[2])), None)
        at = closing.end() if closing else len(text)
        yield CodeBlock(
            start=opening.start(),
            end=at,
            code_start=min(opening.end() + 1, len(text)),
            code_end=closing.start() if closing else len(text),
            before=opening[1],
            info=opening[3].strip(),
            is_closed=closing is not None,
        )


_MARKS = {"photo": "picture", "voice": "voice message"}


def with_attached(parts: Parts, attached: Sequence[Part], *, as_caption: bool) -> Parts:
    """Return the files before the text; a short text becomes the caption of the last file.

    Each part of `attached` has a file and no text. Without `as_caption` the text stays a message of
    its own, which can be edited later.
    """
    fits = len(parts) == 1 and utf16_length(parts[0].text) <= MAX_CAPTION_UTF16
    if not (as_caption and fits) or parts[0].file:
        return (*attached, *parts)
    *before, last = attached
    return (*before, replace(parts[0], file=last.file, instead=last.instead))


def without_file(part: Part) -> Parts:
    """Return what is left of a part without its file: its caption, and what stands instead."""
    rest = replace(part, file=None, instead="")
    if part.instead:
        return with_line((rest,), Part(part.instead))
    return (rest,) if part.text else ()


def said_with(text: str, attached: Sequence[Part]) -> str:
    """Return a reply as the history keeps it, with a line for each file that was sent with it."""
    files = [part.file for part in attached if part.file]
    lines = (f"[sent {_MARKS.get(file.kind, 'file')}: {file.name}]" for file in files)
    return "\n".join(filter(None, (text, *lines)))
