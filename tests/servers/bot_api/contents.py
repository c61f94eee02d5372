"""What a message may carry besides words and files: places, polls, blocks, origins, quotes.

Each function returns the JSON of the Bot API.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from bot.playground.bot_api.chats import ChatMessage as Message
from bot.playground.bot_api.chats import LocalChat as Chat
from bot.playground.bot_api.people import utf16_length
from bot.playground.bot_api.shapes import (
    Shape,
    chat_shape,
    entity_shape,
    message_shape,
    origin_of,
    present,
    user_shape,
)
from bot.playground.bot_api.values import MessageEntity as Entity
from bot.playground.bot_api.values import User

RICH_MEDIA = frozenset(["animation", "audio", "photo", "video", "voice_note"])
RICH_BLOCKS = RICH_MEDIA | {
    "anchor",
    "blockquote",
    "collage",
    "details",
    "divider",
    "expandable_blockquote",
    "footer",
    "heading",
    "list",
    "map",
    "mathematical_expression",
    "paragraph",
    "pre",
    "pullquote",
    "slideshow",
    "table",
}
"""The types of blocks in rich messages, except `thinking`, which only drafts have."""

_QUOTABLE = {"bold", "italic", "underline", "strikethrough", "spoiler", "custom_emoji", "date_time"}
"""Entities that a quote must have exactly as the message has them."""


def location(latitude: float, longitude: float, *, live_period_s: int = 0) -> Shape:
    """Return a place on the map; a live one moves by edits."""
    place: Shape = {"latitude": latitude, "longitude": longitude}
    return {"location": place | present(live_period=live_period_s)}


def venue(title: str, address: str, latitude: float = 48.1, longitude: float = 11.5) -> Shape:
    """Return a place with a name; Telegram adds its location beside it."""
    place = location(latitude, longitude)
    return place | {"venue": place | {"title": title, "address": address}}


def contact(first_name: str, phone_number: str) -> Shape:
    """Return somebody's phone number."""
    return {"contact": {"phone_number": phone_number, "first_name": first_name}}


def poll(question: str, *options: str) -> Shape:
    """Return a poll in which nobody has voted."""
    flags = "is_closed allows_multiple_answers allows_revoting members_only"
    shape: Shape = {
        "id": "1",
        "question": question,
        "options": [
            {"persistent_id": str(number), "text": text, "voter_count": 0}
            for number, text in enumerate(options)
        ],
        "total_voter_count": 0,
        "is_anonymous": True,
        "type": "regular",
    }
    return {"poll": shape | dict.fromkeys(flags.split(), False)}


def rich(*blocks: Shape) -> Shape:
    """Return a rich message of these blocks, such as `{"type": "paragraph", "text": "Hi"}`."""
    unknown = [block for block in blocks if block["type"] not in RICH_BLOCKS]
    if unknown:
        raise ValueError(f"Telegram has no such blocks: {unknown}")
    return {"rich_message": {"blocks": list(blocks)}}


def from_user(user: User, sent_at: int) -> Shape:
    """Return the origin of a message that a user wrote."""
    return {"type": "user", "date": sent_at, "sender_user": user_shape(user)}


def from_hidden_user(name: str, sent_at: int) -> Shape:
    """Return the origin of a message whose writer hides the account."""
    return {"type": "hidden_user", "date": sent_at, "sender_user_name": name}


def from_chat(chat: Chat, sent_at: int, signature: str = "") -> Shape:
    """Return the origin of a message that was sent on behalf of a group."""
    shape: Shape = {"type": "chat", "date": sent_at, "sender_chat": chat_shape(chat)}
    return shape | present(author_signature=signature)


def from_channel(chat: Chat, message_id: int, sent_at: int, signature: str = "") -> Shape:
    """Return the origin of a channel's post."""
    shape: Shape = {"type": "channel", "date": sent_at, "chat": chat_shape(chat)}
    return shape | {"message_id": message_id} | present(author_signature=signature)


@dataclass(frozen=True, slots=True)
class Quote:
    """The part of a message that a reply quotes; `position` counts UTF-16 units."""

    text: str
    position: int
    entities: tuple[Entity, ...] = ()
    is_manual: bool = True

    def shape(self) -> Shape:
        """Return a TextQuote."""
        entities = [entity_shape(entity) for entity in self.entities]
        shape: Shape = {"text": self.text, "position": self.position}
        return shape | present(entities=entities, is_manual=self.is_manual)


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


def external_reply(message: Message) -> Shape:
    """Return the ExternalReplyInfo of a message in another chat or topic; it has no text."""
    shape: Shape = {"origin": origin_of(message)}
    if message.chat.kind in ("supergroup", "channel"):
        shape |= {"chat": chat_shape(message.chat), "message_id": message.id}
    if message.media:
        whole = message_shape(message)
        shape |= {message.media.kind: whole[message.media.kind]}
    return shape


def _inside(entities: Iterable[Entity], position: int, length: int) -> Iterator[Entity]:
    """Yield what entities cover of a part of the text, as a quote of that part has them."""
    for entity in entities:
        start = max(entity.offset, position)
        end = min(entity.offset + entity.length, position + length)
        if entity.type in _QUOTABLE and start < end:
            yield replace(entity, offset=start - position, length=end - start)
