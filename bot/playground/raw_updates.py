"""What people do on the page as raw updates, with the fields that Telegram sends.

An absent value is an absent field.
"""

import re
from typing import Any

from bot.parsing.pictures import format_by_signature
from bot.playground.scene import (
    BOT,
    BOT_USERNAME,
    GROUP,
    PageChat,
    PageFile,
    PageMessage,
    PagePerson,
)
from bot.reply.parts import Entity, utf16_length

_MENTION = re.compile(r"(?<!\w)@[a-zA-Z0-9_]{4,32}(?!\w)")
_COMMAND = re.compile(r"(?<![\w/<>])/[a-zA-Z0-9_]{1,64}(?:@[a-zA-Z0-9_]{3,32})?(?![\w/<>@])")
_PIXELS = 512


def uploaded(content: bytes, name: str, mime_type: str) -> PageFile:
    """Return a file as Telegram's apps send it: as a photo, a voice message or a document."""
    format_ = format_by_signature(content)
    if format_ and mime_type == f"image/{format_.lower()}":
        return PageFile("photo", content, name, mime_type)
    is_sound = mime_type.startswith("audio/")
    return PageFile("voice" if is_sound else "document", content, name, mime_type)


def find_entities(text: str) -> tuple[Entity, ...]:
    """Return the mentions and commands in what a person wrote, in their order."""
    kinds = (("mention", _MENTION), ("bot_command", _COMMAND))
    found = [
        Entity(kind, utf16_length(text[: match.start()]), utf16_length(match[0]))
        for kind, pattern in kinds
        for match in pattern.finditer(text)
    ]
    return tuple(sorted(found, key=lambda entity: entity.offset))


def raw_message(
    place: PageChat, message: PageMessage, *, with_reply: bool = True
) -> dict[str, Any]:
    """Return a Message; the message that it replies to has no reply of its own."""
    origin, replied = message.origin, message.reply_to if with_reply else None
    raw = {
        "message_id": message.id,
        "from": _user(message.sender),
        "chat": raw_chat(place),
        "date": message.sent_at,
    } | _present(
        edit_date=message.edited_at,
        message_thread_id=place.topic_id,
        is_topic_message=bool(place.topic_id),
        forward_origin=origin
        and {"type": "user", "date": origin.sent_at, "sender_user": _user(origin.sender)},
        media_group_id=message.album,
        reply_to_message=replied and raw_message(place, replied, with_reply=False),
    )
    text, entities = ("caption", "caption_entities") if message.file else ("text", "entities")
    raw |= _present(**{text: message.text, entities: list(map(_entity, message.entities))})
    if message.file:
        raw[message.file.kind] = _media(message.file)
    rows = [
        [_present(text=each.text, callback_data=each.callback_data) for each in row]
        for row in message.buttons
    ]
    return raw | ({"reply_markup": {"inline_keyboard": rows}} if rows else {})


def raw_press(
    press_id: int, place: PageChat, message: PageMessage, callback_data: str
) -> dict[str, Any]:
    """Return the CallbackQuery of a button that the speaker presses."""
    return {
        "id": str(press_id),
        "from": _user(place.speaker),
        "message": raw_message(place, message),
        "chat_instance": str(place.chat_id),
        "data": callback_data,
    }


def raw_chat(place: PageChat) -> dict[str, Any]:
    """Return a Chat."""
    if place.is_group:
        return {"id": place.chat_id, "title": GROUP, "type": "supergroup", "is_forum": True}
    return {"id": place.chat_id, "first_name": place.speaker.name, "type": "private"}


def _user(person: PagePerson) -> dict[str, Any]:
    about = {"username": BOT_USERNAME} if person == BOT else {"language_code": person.language}
    return {"id": person.id, "is_bot": person == BOT, "first_name": person.name} | about


def _entity(entity: Entity) -> dict[str, Any]:
    where = {"type": entity.type, "offset": entity.offset, "length": entity.length}
    return where | _present(url=entity.url, language=entity.language)


def _media(file: PageFile) -> object:
    stored = {"file_id": file.id, "file_unique_id": f"u{file.id}", "file_size": len(file.content)}
    if file.kind == "photo":
        return [stored | {"width": _PIXELS, "height": _PIXELS}]
    stored |= _present(file_name=file.name, mime_type=file.mime_type)
    return stored | ({"duration": 1} if file.kind == "voice" else {})


def _present(**fields: object) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}
