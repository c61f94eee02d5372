"""Shows "typing" while somebody waits for a reply; cosmetics, so trouble with it is passed over."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from bot.telegram.errors import TelegramError

_EVERY_S = 4.5
"""Telegram shows it for five seconds."""


class TypingSender(Protocol):
    """Shows that a reply is being written."""

    async def typing(self, chat_id: int, topic_id: int) -> None:
        """Show it for five seconds; raises `TelegramError`."""
        ...


@asynccontextmanager
async def typing(telegram: TypingSender, chat_id: int, topic_id: int) -> AsyncIterator[None]:
    """Keep "typing" shown until the block ends."""
    task = asyncio.create_task(_keep_typing(telegram, chat_id, topic_id))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _keep_typing(telegram: TypingSender, chat_id: int, topic_id: int) -> None:
    try:
        while True:
            await telegram.typing(chat_id, topic_id)
            await asyncio.sleep(_EVERY_S)
    except TelegramError:
        return
