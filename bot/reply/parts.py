"""Message parts as plain values: text, entities, buttons, a file; and how the outbox stores them.

`render` makes parts, `bot.telegram` sends them. Telegram counts text in UTF-16 units, where an
emoji is two. Entities are positions in units, so a text and its entities are edited together.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

import orjson

from memory.behaviors.tool_output import OutgoingFile
from memory.erasure.questions import Question


@dataclass(frozen=True, slots=True)
class Entity:
    """A stretch of text with one format; `offset` and `length` count UTF-16 units."""

    type: str  # Telegram's name of the format
    offset: int
    length: int
    url: str = ""  # of `text_link`, and of `date_time` as `tg://time?unix=<seconds>`
    language: str = ""  # of `pre`

    @property
    def end(self) -> int:
        """The first unit after the entity."""
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class Button:
    """One inline button."""

    text: str
    callback_data: str = ""  # 1 to 64 bytes
    copies: str = ""  # it puts this text into the clipboard instead; never stored


@dataclass(frozen=True, slots=True)
class Quote:
    """The message that a part replies to, and its passage that the reply quotes, "" for none.

    If the message is gone, or Telegram does not find the passage in it, the text of the part ends
    with the passage instead.
    """

    message_id: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """One Telegram message."""

    text: str  # with a `file` its caption, of at most 1024 UTF-16 units
    entities: tuple[Entity, ...] = ()  # in order of their offsets
    buttons: tuple[tuple[Button, ...], ...] = ()  # in rows
    export_of: str = ""  # a conversation: a file with all of it is made right before it is sent
    file: OutgoingFile | None = None
    is_rich: bool = False  # the text is the Markdown of a rich message; never stored
    quote: Quote | None = None  # what it replies to instead of the message that the outbox names
    force_reply: bool = False  # the person's app begins a reply to it; never stored
    instead: str = ""  # stands below the caption if the chat refuses the file; none for a text
    is_silent: bool = False  # no sound announces it
    copy_of: tuple[int, int] | None = None  # chat and id of the message to copy; never stored
    question: Question | None = field(default=None, compare=False)  # what its buttons answer


Parts = tuple[Part, ...]
"""Messages to send, in order."""


def with_buttons(parts: Sequence[Part], *row: Button, question: Question | None = None) -> Parts:
    """Return parts with a row of buttons, possibly empty, below the last one."""
    *before, last = parts
    return (*before, replace(last, buttons=(row,) if row else (), question=question))


_ABSENT: tuple[Any, ...] = ("", None, None, None, None, "text", "", 0, "", False)
"""What a part has in its last fields if it says nothing of them."""


def with_passage(part: Part, passage: str) -> Part:
    """Return a part with a passage below its text, marked as a quote in every language."""
    text = f"{part.text}\n"
    quoted = Entity("blockquote", utf16_length(text), utf16_length(passage))
    return replace(part, text=f"{text}{passage}", entities=(*part.entities, quoted))


def to_json(parts: Sequence[Part]) -> str:
    """Pack parts into arrays without names: the outbox is read and written with every turn.

    The contents of files are left out unless they are text.
    """
    packed: list[tuple[object, ...]] = []
    for part in parts:
        entities = [(e.type, e.offset, e.length, e.url, e.language) for e in part.entities]
        buttons = [[(button.text, button.callback_data) for button in row] for row in part.buttons]
        file, quote = part.file, part.quote
        rest = [part.export_of, *_ABSENT[1:-2], part.instead, part.is_silent]
        if file and file.kind == "text":
            rest[1:3] = file.name, file.content.decode()
        elif file:
            rest[1:2] = (file.name,)
            rest[5:8] = file.kind, file.file_id, file.nbytes
        if quote:
            rest[3:5] = quote.message_id, quote.text
        # Left out if they say nothing, so that an older process can read most parts.
        while rest and rest[-1] == _ABSENT[len(rest) - 1]:
            rest.pop()
        packed.append((part.text, entities, buttons, *rest))
    return orjson.dumps(packed).decode()


def from_json(stored: str, contents: bytes = b"") -> Parts:
    """Unpack what `to_json` returned; raise `ValueError` if it is not JSON.

    `contents` has the contents of all files that are not text, one behind the other.
    """
    parts, at = [], 0
    for text, entities, buttons, *given in orjson.loads(stored):
        rest = (*given, *_ABSENT[len(given) :])
        export_of, name, content, message_id, passage, kind, file_id, nbytes, instead, silent = rest
        file = None
        if name is not None:
            raw = contents[at : at + nbytes] if content is None else content.encode()
            file = OutgoingFile(name, raw, file_id, kind)
        at += nbytes
        part = Part(
            text,
            tuple(Entity(*fields) for fields in entities),
            tuple(tuple(Button(*fields) for fields in row) for row in buttons),
            export_of,
            file,
            quote=None if message_id is None else Quote(message_id, passage),
            instead=instead,
            is_silent=silent,
        )
        parts.append(part)
    return tuple(parts)


def well_formed(text: str) -> str:
    """Replace each lone surrogate by U+FFFD, because no JSON or UTF-8 writer accepts one.

    The length in UTF-16 units stays the same, so the offsets of entities stay valid.
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def utf16_length(text: str) -> int:
    """Return the length of well-formed text in UTF-16 units."""
    return len(text.encode("utf-16-le")) // 2


def utf16_slice(text: str, start: int, end: int | None = None) -> str:
    """Cut well-formed text by UTF-16 offsets; half an emoji becomes U+FFFD."""
    units = text.encode("utf-16-le")
    return units[2 * start : None if end is None else 2 * end].decode("utf-16-le", "replace")


def text_of(units: bytes, entity: Entity) -> str:
    """Return the text of an entity; `units` is the whole text in UTF-16-LE.

    Encoding the text once for all its entities keeps their cost linear.
    """
    return units[2 * entity.offset : 2 * entity.end].decode("utf-16-le")


@dataclass(frozen=True, slots=True)
class Edit:
    """The text that replaces the UTF-16 units from `start` to `end`."""

    start: int
    end: int
    text: str


def edited(
    text: str, entities: Iterable[Entity], edits: Sequence[Edit]
) -> tuple[str, list[Entity]]:
    """Return text and entities after `edits`, which are in order and do not overlap.

    An entity that ends where an edit ends covers the whole replacement.
    """
    if not edits:
        return text, list(entities)
    units = text.encode("utf-16-le")
    pieces, at = [], 0
    for edit in edits:
        pieces += [units[2 * at : 2 * edit.start], edit.text.encode("utf-16-le")]
        at = edit.end
    ends = [edit.end for edit in edits]
    grown = (utf16_length(edit.text) - (edit.end - edit.start) for edit in edits)
    growth = [0, *accumulate(grown)]

    def moved(entity: Entity) -> Entity:
        start = entity.offset + growth[bisect_right(ends, entity.offset)]
        end = entity.end + growth[bisect_right(ends, entity.end)]
        return replace(entity, offset=start, length=end - start)

    return b"".join((*pieces, units[2 * at :])).decode("utf-16-le"), list(map(moved, entities))


def shortened(text: str, max_units: int) -> str:
    """Return the first UTF-16 units of a text; "…" follows if there are more."""
    head = utf16_slice(text, 0, max_units)
    return text if head == text else f"{head.rstrip('�')}…"
