"""What a message may carry besides words and files: places, contacts, blocks, quotes.

Each function returns the JSON of the Bot API.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from tests.servers.bot_api.chats import Message
from tests.servers.bot_api.shapes import Shape
from tests.servers.bot_api.values import Entity, Quote, utf16_length

_QUOTABLE = {"bold", "italic", "underline", "strikethrough", "spoiler", "date_time"}
"""Entities that a quote must have exactly as the message has them."""


def location(latitude: float, longitude: float) -> Shape:
    return {"location": {"latitude": latitude, "longitude": longitude}}


def contact(first_name: str, phone_number: str) -> Shape:
    return {"contact": {"phone_number": phone_number, "first_name": first_name}}


def rich(*blocks: Shape) -> Shape:
    """Return a rich message of these blocks, such as `{"type": "paragraph", "text": "Hi"}`."""
    return {"rich_message": {"blocks": list(blocks)}}


def find_quote(
    message: Message, text: str, entities: Iterable[Entity] | None = None
) -> Quote | None:
    """Return the part of a message that has exactly this text and its entities, None if none has.

    With None as `entities`, take the entities of the message.
    """
    wanted = None if entities is None else [e for e in entities if e.type in _QUOTABLE]
    for found in re.finditer(f"(?={re.escape(text)})", message.text):
        position = utf16_length(message.text[: found.start()])
        inside = list(_inside(message.entities, position, utf16_length(text)))
        if wanted in (None, inside):
            return Quote(text, position, tuple(inside))
    return None


def _inside(entities: Iterable[Entity], position: int, length: int) -> Iterator[Entity]:
    """Yield what entities cover of a part of the text, as a quote of that part has them."""
    for entity in entities:
        start = max(entity.offset, position)
        end = min(entity.offset + entity.length, position + length)
        if entity.type in _QUOTABLE and start < end:
            yield replace(entity, offset=start - position, length=end - start)
