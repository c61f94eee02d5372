"""Our calls within the outbound budget: typing is left out where it is tight, notices wait.

Sending is paced by whoever delivers, for after each wait it asks whether the reply is still wanted;
here it only hears of Telegram's bans. Edits and deletions count and never wait: edits answer a
press, which Telegram repeats when it is kept waiting.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.reply.parts import Part
from bot.telegram.backoff import Pause
from bot.telegram.client import CALL_S, TelegramClient
from bot.telegram.errors import FloodWait
from bot.telegram.rate_limit import OutboundBudget
from bot.telegram.values import OutgoingFile


class RateLimitedTelegramClient(TelegramClient):
    """A client that keeps to a budget."""

    def __init__(
        self,
        token: str,
        api_url: str,
        budget: OutboundBudget,
        *,
        pause: Pause = asyncio.sleep,
    ) -> None:
        super().__init__(token, api_url)
        self.budget = budget
        self._pause = pause

    async def send(
        self,
        chat_id: int,
        topic_id: int,
        part: Part,
        reply_to: int | None = None,
        timeout_s: float = CALL_S,
    ) -> int:
        """Send one part and return its message id; its place was taken before."""
        async with self._heeding(chat_id):
            return await super().send(chat_id, topic_id, part, reply_to, timeout_s)

    async def send_file(
        self,
        chat_id: int,
        topic_id: int,
        file: OutgoingFile,
        reply_to: int | None = None,
        timeout_s: float = CALL_S,
    ) -> int:
        """Send a file and return its message id; as `send` otherwise."""
        async with self._heeding(chat_id):
            return await super().send_file(chat_id, topic_id, file, reply_to, timeout_s)

    async def announce(self, chat_id: int, part: Part) -> None:
        """Send one part that answers nobody, after a wait where the budget is used up."""
        async for wait_s in self.budget.waits(chat_id):
            await self._pause(wait_s)
        await self.send(chat_id, 0, part)

    async def edit(self, chat_id: int, message_id: int, part: Part) -> None:
        """Replace a message of ours, at once; raise `FloodWait` unasked while its chat is shut."""
        await self.budget.take_unless_shut(chat_id)
        async with self._heeding(chat_id):
            await super().edit(chat_id, message_id, part)

    async def delete(self, chat_id: int, message_id: int) -> None:
        """Delete a message, at once."""
        await self.budget.take(chat_id)
        async with self._heeding(chat_id):
            await super().delete(chat_id, message_id)

    async def typing(self, chat_id: int, topic_id: int) -> None:
        """Show "typing", where the budget has a place to spare."""
        if await self.budget.take_spare(chat_id):
            async with self._heeding(chat_id):
                await super().typing(chat_id, topic_id)

    @asynccontextmanager
    async def _heeding(self, chat_id: int) -> AsyncIterator[None]:
        try:
            yield
        except FloodWait as ban:
            await self.budget.shut(chat_id, ban.retry_after_s)
            raise
