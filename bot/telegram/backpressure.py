"""Pressure: when so much waits for an answer that Telegram had better keep what comes.

Telegram is told 503 and delivers again later; polling pauses. Nothing is lost for 24 hours.
"""

import time
from collections.abc import Callable

from memory.store.client import RedisClient
from memory.store.keys import Keys

_LOOK_EVERY_S = 1.0


class Backpressure:
    """Looks at the doorbell now and then; one look serves all that comes in the meantime."""

    def __init__(
        self,
        client: RedisClient,
        keys: Keys,
        max_pending: int,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._ready_queue = keys.ready_queue
        self._max_pending = max_pending
        self._now = now
        self._looked_at = float("-inf")
        self._is_high = False

    async def is_high(self) -> bool:
        """Say whether more bells than allowed are unanswered; raise `StoreError`."""
        if self._max_pending and self._now() - self._looked_at >= _LOOK_EVERY_S:
            self._looked_at = self._now()
            self._is_high = await self._client.call("XLEN", self._ready_queue) > self._max_pending
        return self._is_high
