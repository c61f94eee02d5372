"""Shows "typing" while somebody waits for a reply; cosmetics, so trouble with it is passed over."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.telegram.chat import Chat, Destination
from bot.telegram.errors import TelegramError

_EVERY_S = 4.5
"""Telegram shows it for five seconds."""


@asynccontextmanager
async def typing(chat: Chat, to: Destination) -> AsyncIterator[None]:
    """Keep "typing" shown until the block ends."""
    task = asyncio.create_task(_keep_typing(chat, to))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _keep_typing(chat: Chat, to: Destination) -> None:
    try:
        while True:
            await chat.show_typing(to)
            await asyncio.sleep(_EVERY_S)
    except TelegramError:
        return
