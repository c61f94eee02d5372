"""Our calls within the outbound budget: typing is left out where it is tight, notices wait.

Sending is paced by whoever delivers, for after each wait it asks whether the reply is still wanted;
here it only hears of Telegram's bans. Edits and deletions count and never wait: edits answer a
press, which Telegram repeats when it is kept waiting.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.reply.parts import Part
from bot.telegram.chat import Destination
from bot.telegram.client import CALL_S, TelegramClient
from bot.telegram.errors import FloodWait
from bot.telegram.rate_limit import OutboundBudget


class RateLimitedTelegramClient(TelegramClient):
    """A client that keeps to a budget."""

    def __init__(self, token: str, api_url: str, budget: OutboundBudget) -> None:
        super().__init__(token, api_url)
        self.budget = budget

    def waits(self, chat_id: int) -> AsyncIterator[float]:
        """Take a permit for one message; yield each wait in seconds."""
        return self.budget.waits(chat_id)

    async def send(self, to: Destination, part: Part, timeout_s: float = CALL_S) -> int:
        """Send one part and return the id of the message; its permit was taken before."""
        async with self._heeding(to.chat_id):
            return await super().send(to, part, timeout_s)

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

    async def show_typing(self, to: Destination) -> None:
        """Show "typing" if the rate limit has a permit to spare."""
        if await self.budget.take_spare(to.chat_id):
            async with self._heeding(to.chat_id):
                await super().show_typing(to)

    @asynccontextmanager
    async def _heeding(self, chat_id: int) -> AsyncIterator[None]:
        try:
            yield
        except FloodWait as ban:
            await self.budget.shut(chat_id, ban.retry_after_s)
            raise
