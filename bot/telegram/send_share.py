"""What Telegram allows one bot is shared evenly by the workers that are alive, whoever they are.

A process that only takes updates in hears no doorbell and is not counted. It sends little, receipts
under buttons and notices, and keeps to a worker's part as well: so much may come on top.
"""

import asyncio

import structlog

from bot.telegram.rate_limit import OutboundBudget
from memory.queue.ready_queue import ReadyQueue
from memory.store.errors import StoreError

log = structlog.get_logger(__name__)

_LOOK_EVERY_S = 10.0


class Sharing:
    """Looks again and again how many workers hear the doorbell."""

    def __init__(self, ready_queue: ReadyQueue, budget: OutboundBudget, lease_s: float) -> None:
        self._ready_queue = ready_queue
        self._budget = budget
        self._lease_ms = int(lease_s * 1000)

    async def run(self) -> None:
        """Look until cancelled, or not at all where there is no budget to share."""
        while self._budget.is_on:
            try:
                await self.look()
            except StoreError as error:
                log.warning("workers not counted", reason=type(error).__name__)
            await asyncio.sleep(_LOOK_EVERY_S)

    async def look(self) -> None:
        """Count once; raise `StoreError`. Who is just starting counts as soon as it listens."""
        self._budget.share(max(1, await self._ready_queue.listeners(self._lease_ms)))
