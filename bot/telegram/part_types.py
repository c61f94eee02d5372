"""Our parts in the types of python-telegram-bot, and how a file of ours is sent."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import orjson
import telegram

from bot.reply.parts import Button, Entity, Part, Quote
from bot.reply.split import MAX_UTF16
from bot.reply.utf16 import utf16_length, well_formed
from memory.behaviors.tool_output import OutgoingFile

# The entities that a reply may have. Other types need fields that `Entity` lacks, or Telegram finds
# them in the text itself. An unknown type is dropped, because the text matters more than its looks.
_ENTITY_TYPES = frozenset(
    {
        telegram.MessageEntity.BOLD,
        telegram.MessageEntity.ITALIC,
        telegram.MessageEntity.UNDERLINE,
        telegram.MessageEntity.STRIKETHROUGH,
        telegram.MessageEntity.SPOILER,
        telegram.MessageEntity.CODE,
        telegram.MessageEntity.PRE,
        telegram.MessageEntity.TEXT_LINK,
        telegram.MessageEntity.BLOCKQUOTE,
        telegram.MessageEntity.EXPANDABLE_BLOCKQUOTE,
        telegram.MessageEntity.DATE_TIME,
    }
)
_MOMENT_FORMAT = "wDt"
"""Weekday, long date and short time, in the language and the time zone of whoever reads it."""


def entities_of(entities: Iterable[Entity]) -> list[telegram.MessageEntity] | None:
    """Return the entities that Telegram can show, None if there are none."""
    return [_typed(_fields(entity)) for entity in _shown(entities)] or None


def entities_json(entities: Iterable[Entity]) -> str | None:
    """Return the same as JSON; for a draft the library's objects would cost more than the call."""
    shown = [_fields(entity) for entity in _shown(entities)]
    return orjson.dumps(shown).decode() if shown else None


def _shown(entities: Iterable[Entity]) -> Iterator[Entity]:
    for entity in entities:
        has_url = entity.url or entity.type != telegram.MessageEntity.TEXT_LINK
        if entity.type in _ENTITY_TYPES and has_url:
            yield entity


def _fields(entity: Entity) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "type": entity.type,
        "offset": entity.offset,
        "length": entity.length,
    }
    if entity.type == telegram.MessageEntity.DATE_TIME:
        fields["unix_time"] = int(entity.url.rpartition("=")[2])
        fields["date_time_format"] = _MOMENT_FORMAT
    elif entity.url:
        fields["url"] = well_formed(entity.url)
    if entity.language:
        fields["language"] = well_formed(entity.language)
    return fields


def _typed(fields: dict[str, Any]) -> telegram.MessageEntity:
    if "unix_time" in fields:
        fields["unix_time"] = datetime.fromtimestamp(fields["unix_time"], UTC)
    return telegram.MessageEntity(**fields)


def keyboard_of(buttons: Iterable[Iterable[Button]]) -> telegram.InlineKeyboardMarkup | None:
    """Return the rows of buttons, None if there are none."""
    rows = [[_button_of(button) for button in row] for row in buttons]
    return telegram.InlineKeyboardMarkup(rows) if rows else None


def _button_of(button: Button) -> telegram.InlineKeyboardButton:
    text = well_formed(button.text)
    if button.copies:
        copied = telegram.CopyTextButton(button.copies)
        return telegram.InlineKeyboardButton(text=text, copy_text=copied)
    return telegram.InlineKeyboardButton(text=text, callback_data=button.callback_data)


def markup_of(part: Part) -> telegram.InlineKeyboardMarkup | telegram.ForceReply | None:
    """Return the buttons of a part, or what makes the person's app begin a reply to it.

    In a group this is left to the person: without a mention Telegram would ask all members.
    """
    return telegram.ForceReply(selective=True) if part.force_reply else keyboard_of(part.buttons)


def reply_parameters(message_id: int, quote: str = "") -> telegram.ReplyParameters | None:
    """Answer that message, none for 0, and quote a passage of it.

    If the message is gone by then, a reply with a passage is refused, and one without is sent all
    the same.
    """
    if not message_id:
        return None
    return telegram.ReplyParameters(
        message_id=message_id,
        allow_sending_without_reply=not quote,
        quote=well_formed(quote) or None,
    )


def without_passage(part: Part, quote: Quote) -> Part:
    """Return a part that replies to the message without a quote; its text ends with the passage."""
    text = f"{part.text}\n“{quote.text}”"
    text = text if utf16_length(well_formed(text)) <= MAX_UTF16 else part.text
    return replace(part, text=text, quote=Quote(quote.message_id))


async def send_file(
    bot: telegram.Bot, chat_id: int, file: OutgoingFile, options: dict[str, Any]
) -> telegram.Message:
    """Send one file; `options` are further parameters, such as the caption. Raise PTB's errors."""
    what = file.file_id or telegram.InputFile(file.content, file.name)
    match file.kind:
        case "photo":
            return await bot.send_photo(chat_id, what, **options)
        case "voice":
            return await bot.send_voice(chat_id, what, **options)
        case "text" | "document":
            return await bot.send_document(
                chat_id, what, disable_content_type_detection=True, **options
            )
