"""Our parts as the Bot API takes them."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from bot.reply.parts import Button, Entity, Part, Quote
from bot.reply.split import MAX_UTF16
from bot.reply.utf16 import utf16_length, well_formed
from memory.behaviors.tool_output import OutgoingFile

# The entities that a reply may have. Other types need fields that `Entity` lacks, or Telegram finds
# them in the text itself. An unknown type is dropped, because the text matters more than its looks.
_ENTITY_TYPES = frozenset(
    ("bold", "italic", "underline", "strikethrough", "spoiler", "code", "pre", "text_link")
) | {"blockquote", "expandable_blockquote", "date_time"}
_MOMENT_FORMAT = "wDt"
"""Weekday, long date and short time, in the language and the time zone of whoever reads it."""


def entities_of(entities: Iterable[Entity]) -> list[dict[str, Any]] | None:
    """Return the entities that Telegram can show, None if there are none."""
    shown = []
    for each in entities:
        if each.type not in _ENTITY_TYPES or (each.type == "text_link" and not each.url):
            continue
        fields: dict[str, Any] = {
            "type": each.type,
            "offset": each.offset,
            "length": each.length,
        }
        if each.type == "date_time":
            fields["unix_time"] = int(each.url.rpartition("=")[2])
            fields["date_time_format"] = _MOMENT_FORMAT
        elif each.url:
            fields["url"] = well_formed(each.url)
        if each.language:
            fields["language"] = well_formed(each.language)
        shown.append(fields)
    return shown or None


def keyboard_of(buttons: Iterable[Iterable[Button]]) -> dict[str, Any] | None:
    """Return the rows of buttons, None if there are none."""
    rows = [[_button_of(button) for button in row] for row in buttons]
    return {"inline_keyboard": rows} if rows else None


def _button_of(button: Button) -> dict[str, Any]:
    text = well_formed(button.text)
    if button.copies:
        return {"text": text, "copy_text": {"text": button.copies}}
    return {"text": text, "callback_data": button.callback_data}


def reply_parameters(message_id: int, quote: str = "") -> dict[str, Any] | None:
    """Answer that message, none for 0, and quote a passage of it.

    If the message is gone by then, a reply with a passage is refused, and one without is sent all
    the same.
    """
    if not message_id:
        return None
    quoting = {"quote": well_formed(quote)} if quote else {}
    return {"message_id": message_id, "allow_sending_without_reply": not quote} | quoting


def without_passage(part: Part, quote: Quote) -> Part:
    """Return a part that replies to the message without a quote; its text ends with the passage."""
    text = f"{part.text}\n“{quote.text}”"
    text = text if utf16_length(well_formed(text)) <= MAX_UTF16 else part.text
    return replace(part, text=text, quote=Quote(quote.message_id))


def upload_of(file: OutgoingFile) -> tuple[str, dict[str, Any]]:
    """Return the method that sends a file, and its parameters."""
    what = file.file_id or file
    match file.kind:
        case "photo":
            return "sendPhoto", {"photo": what}
        case "voice":
            return "sendVoice", {"voice": what}
        case "text" | "document":
            return "sendDocument", {"document": what, "disable_content_type_detection": True}
