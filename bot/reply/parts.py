"""Message parts as plain values: text, entities, buttons, a file; and how the outbox stores them.

`render` makes parts, `bot.telegram` sends them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson


@dataclass(frozen=True, slots=True)
class Entity:
    """A stretch of text with one format; `offset` and `length` count UTF-16 units.

    `type` is Telegram's name of the format. `url` belongs to `text_link` and, as
    `tg://time?unix=<seconds>`, to `date_time`; `language` belongs to `pre`.
    """

    type: str
    offset: int
    length: int
    url: str = ""
    language: str = ""

    @property
    def end(self) -> int:
        """The first unit after the entity."""
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class Button:
    """One inline button; Telegram takes 1 to 64 bytes of `callback_data`."""

    text: str
    callback_data: str


@dataclass(frozen=True, slots=True)
class OutgoingFile:
    """A file to send; in an outbox its content is UTF-8."""

    name: str
    content: bytes = field(repr=False)


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
    """One Telegram message: text, entities in order of their offsets, rows of buttons.

    With a `file` the text is its caption, of at most 1024 UTF-16 units. `export_of` names a
    conversation: everything stored of it is sent as a file, which is made right before it is sent
    and is never stored. `is_rich`: the text is the Markdown of a rich message; it is made from the
    outbox right before it is sent and is never stored either. `quote` is the message that this
    part replies to instead of the one that the outbox names. `force_reply`: the person's app begins
    a reply to it; such a part is sent at once and is never stored.
    """

    text: str
    entities: tuple[Entity, ...] = ()
    buttons: tuple[tuple[Button, ...], ...] = ()
    export_of: str = ""
    file: OutgoingFile | None = None
    is_rich: bool = False
    quote: Quote | None = None
    force_reply: bool = False


def to_json(parts: Sequence[Part]) -> str:
    """Pack parts into arrays without names: the outbox is read and written with every turn."""
    return orjson.dumps([_packed(part) for part in parts]).decode()


def from_json(stored: str | bytes) -> tuple[Part, ...]:
    """Unpack what `to_json` packed; raise `ValueError` if it is not JSON."""
    return tuple(_part(*fields) for fields in orjson.loads(stored))


def _packed(part: Part) -> tuple[object, ...]:
    entities = [(e.type, e.offset, e.length, e.url, e.language) for e in part.entities]
    buttons = [[(button.text, button.callback_data) for button in row] for row in part.buttons]
    packed = (part.text, entities, buttons)
    file = (part.file.name, part.file.content.decode()) if part.file else ()
    if part.quote:
        quote = (part.quote.message_id, part.quote.text)
        return (*packed, part.export_of, *(file or (None, None)), *quote)
    if part.file or part.export_of:
        return (*packed, part.export_of, *file)
    return packed


def _part(
    text: str,
    entities: Sequence[Sequence[Any]],
    buttons: Sequence[Sequence[Sequence[str]]],
    export_of: str = "",
    *rest: Any,
) -> Part:
    name, content, *quote = rest or (None, None)
    return Part(
        text,
        tuple(Entity(*fields) for fields in entities),
        tuple(tuple(Button(*fields) for fields in row) for row in buttons),
        export_of,
        None if name is None else OutgoingFile(name, content.encode()),
        quote=Quote(*quote) if quote else None,
    )
