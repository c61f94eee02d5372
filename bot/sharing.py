"""What Telegram allows one bot is shared evenly by the workers that are alive, whoever they are.

A process that only takes updates in hears no doorbell and is not counted. It sends little, receipts
under buttons and notices, and keeps to a worker's part as well: so much may come on top.
"""

import asyncio

import structlog

from bot.telegram.pacing import OutboundBudget
from memory.protocol.doorbell import Doorbell
from memory.store_errors import StoreError

log = structlog.get_logger(__name__)

_LOOK_EVERY_S = 10.0


class Sharing:
    """Looks again and again how many workers hear the doorbell."""

    def __init__(self, doorbell: Doorbell, budget: OutboundBudget, lease_s: float) -> None:
        self._doorbell = doorbell
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
        self._budget.share(max(1, await self._doorbell.listeners(self._lease_ms)))
