"""Message parts as plain values: text, entities, buttons, a file; and how the outbox stores them.

`render` makes parts, `bot.telegram` sends them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
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
    question: Question | None = field(default=None, compare=False)  # what its buttons answer


def with_buttons(
    parts: Sequence[Part], *row: Button, question: Question | None = None
) -> tuple[Part, ...]:
    """Return parts with a row of buttons, possibly empty, below the last one."""
    *before, last = parts
    return (*before, replace(last, buttons=(row,) if row else (), question=question))


def to_json(parts: Sequence[Part]) -> str:
    """Pack parts into arrays without names: the outbox is read and written with every turn.

    The contents of files are left out unless they are text; `contents_of` returns them.
    """
    return orjson.dumps([_packed(part) for part in parts]).decode()


def contents_of(parts: Sequence[Part]) -> bytes:
    """Return the contents of all files that are not text, in order, one behind the other."""
    return b"".join(part.file.content for part in parts if part.file and part.file.kind != "text")


def from_json(stored: str | bytes, contents: bytes = b"") -> tuple[Part, ...]:
    """Unpack what `to_json` and `contents_of` returned; raise `ValueError` if it is not JSON."""
    return tuple(_unpacked(orjson.loads(stored), contents))


_ABSENT: tuple[Any, ...] = ("", None, None, None, None, "text", "", 0, "", False)
"""What a part has in its last fields if it says nothing of them."""


def _packed(part: Part) -> tuple[object, ...]:
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
    return (part.text, entities, buttons, *rest)


def _unpacked(stored: Sequence[Sequence[Any]], contents: bytes) -> Iterator[Part]:
    at = 0
    for text, entities, buttons, *given in stored:
        rest = (*given, *_ABSENT[len(given) :])
        export_of, name, content, message_id, passage, kind, file_id, nbytes, instead, silent = rest
        file = None
        if name is not None:
            raw = contents[at : at + nbytes] if content is None else content.encode()
            file = OutgoingFile(name, raw, file_id, kind)
        at += nbytes
        yield Part(
            text,
            tuple(Entity(*fields) for fields in entities),
            tuple(tuple(Button(*fields) for fields in row) for row in buttons),
            export_of,
            file,
            quote=None if message_id is None else Quote(message_id, passage),
            instead=instead,
            is_silent=silent,
        )
