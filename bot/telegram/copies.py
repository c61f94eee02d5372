"""Copies one message to many chats, at half of the rate at which the bot may send.

So the bot can go on answering people while an announcement is being sent.
"""

import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from bot.reply.parts import Button
from bot.telegram.bot_api import calling
from bot.telegram.errors import FloodWait
from bot.telegram.part_types import keyboard_of
from bot.telegram.telegram_chat import TelegramChat
from bot.telegram.transport import CONNECT_S


@dataclass(frozen=True, slots=True)
class CopiedMessage:
    """The message to copy, and the button below each copy."""

    chat_id: int
    message_id: int
    button: Button


class Copier:
    """Makes the copies of one worker; `per_second` is the rate of the bot, 0 is no limit."""

    def __init__(
        self,
        chat: TelegramChat,
        per_second: int,
        timeout_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._now = clock
        self._bot = chat.client.bot
        self._limiter = chat.limiter
        self._every_s = 2 / per_second if per_second else 0.0
        self._timeout_s = timeout_s
        self._free_at = 0.0

    async def waits(self, chat_id: int) -> AsyncIterator[float]:
        """Take a permit for one copy; yield each wait in seconds, as `Chat.waits` does."""
        now = self._now()
        self._free_at = max(now, self._free_at)
        yield self._free_at - now
        self._free_at += self._every_s
        async for wait_s in self._limiter.waits(chat_id):
            yield wait_s

    async def copy(self, message: CopiedMessage, chat_id: int) -> None:
        """Copy the message to a chat, once; raise `TelegramError`."""
        connect_s = min(CONNECT_S, self._timeout_s / 2)
        try:
            async with calling(self._timeout_s):
                await self._bot.copy_message(
                    chat_id,
                    message.chat_id,
                    message.message_id,
                    reply_markup=keyboard_of([[message.button]]),
                    connect_timeout=connect_s,
                    pool_timeout=connect_s,
                )
        except FloodWait as ban:
            await self._limiter.close(chat_id, ban.retry_after_s)
            raise
