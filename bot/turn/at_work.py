"""Shows "typing" while a person waits for a reply, and bounds how long they wait."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.telegram.chat import Chat, Destination
from bot.telegram.errors import TelegramError

_EVERY_S = 4.5
"""Telegram shows it for five seconds."""


class AtWork:
    """Bounds slow steps of a turn to `timeout_s` each."""

    def __init__(self, chat: Chat, timeout_s: float) -> None:
        self._chat = chat
        self._timeout_s = timeout_s

    @asynccontextmanager
    async def shown(self, to: Destination) -> AsyncIterator[None]:
        """Show "typing" until the block ends; raise `TimeoutError` if that takes too long."""
        task = asyncio.create_task(self._keep_typing(to))
        try:
            async with asyncio.timeout(self._timeout_s):
                yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _keep_typing(self, to: Destination) -> None:
        """Give up at the first refusal: the reply matters, this does not."""
        try:
            while True:
                await self._chat.show_typing(to)
                await asyncio.sleep(_EVERY_S)
        except TelegramError:
            return
