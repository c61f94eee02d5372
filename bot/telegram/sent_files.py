"""Sends a file of ours, by its bytes or by Telegram's id, in the way of its kind."""

from typing import Any

import telegram

from memory.behaviors.tool_output import OutgoingFile


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
