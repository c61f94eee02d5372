"""Keeps the bot working on a Redis that fills up: alerts admins, frees the ballast.

Every process reads how full it is. Only the process that holds a lease does something about it.
"""

import sys
from collections import deque
from collections.abc import Awaitable, Callable
from time import time

from memory.limits.alerts import AlertLog, CapacityAlert, Level
from memory.limits.fill_level import Ballast, FillLevel, ballast_bytes, read_fill_level
from memory.store.store import Store

_ALERT_ABOVE = 0.8
_BALLAST_BELOW = 0.9
_LEASE_MS = 30_000
_SAMPLE_EVERY_S = 60.0
_MAX_SAMPLES = 120

SendAlert = Callable[[CapacityAlert, FillLevel], Awaitable[bool]]
"""Sends an alert to admins; false if no admin could be reached now and it must be tried again."""


class CapacityMonitor:
    """Watches the capacity of Redis for one bot.

    `default_limit` is the number of bytes of a Redis that does not tell its limit; 0 means unknown.
    `samples` are what this process has seen in the last two hours, with times in Unix seconds,
    oldest first.
    """

    def __init__(self, store: Store, default_limit: int) -> None:
        self.ballast = Ballast(store)
        self._store = store
        self._default_limit = default_limit
        self._alerts = AlertLog(store)
        self._lease = store.lease(store.keys.capacity_lease, _LEASE_MS)
        self.samples: deque[tuple[float, FillLevel]] = deque(maxlen=_MAX_SAMPLES)
        self._seen: Level | None = None

    def room(self) -> int:
        """Return how many bytes may be stored for a moment without filling Redis up.

        A large value takes twice its size while a script writes it (measured on Valkey 9.1); the
        rest is for other turns. A Redis whose limit is unknown, or that this process has not looked
        at yet, has all the room that is asked for.
        """
        if not self.samples:
            return sys.maxsize
        _, fill = self.samples[-1]
        return int(_ALERT_ABOVE * fill.limit - fill.used) // 3 if fill.limit else sys.maxsize

    async def fill_level(self) -> FillLevel:
        """Return how full Redis is now."""
        return await read_fill_level(self._store.client, self._default_limit)

    async def check(self, send_alert: SendAlert) -> Level:
        """Read how full Redis is, act unless another process does, and return the level.

        Does nothing if the limit of Redis is unknown. Raise `StoreError`.
        """
        fill_level = await self.fill_level()
        if not self.samples or time() - self.samples[-1][0] >= _SAMPLE_EVERY_S:
            self.samples.append((time(), fill_level))
        if not fill_level.limit:
            return Level.NORMAL
        await self.ballast.refresh()
        if fill_level.share > 1:
            await self.ballast.release()
        level = self._level(fill_level)
        is_quiet = level == self._seen and level <= Level.NORMAL and self.ballast.is_allocated
        if not is_quiet and await self._lease.hold():
            try:
                level = await self._act(fill_level, send_alert)
            finally:
                await self._lease.release()
        self._seen = level
        return level

    async def _act(self, fill_level: FillLevel, send_alert: SendAlert) -> Level:
        used_with_ballast = fill_level.used + ballast_bytes(fill_level.limit)
        has_space = used_with_ballast < _BALLAST_BELOW * fill_level.limit
        if not self.ballast.is_allocated and has_space:
            await self.ballast.allocate(fill_level.limit)
        level, now = self._level(fill_level), time()
        alert = await self._alerts.due(level, now)
        if alert and await send_alert(alert, fill_level):
            await self._alerts.mark_reported(alert, level, now)
        return level

    def _level(self, fill_level: FillLevel) -> Level:
        if self.ballast.is_released or fill_level.share > 1:
            return Level.FULL
        if fill_level.share > _ALERT_ABOVE:
            return Level.FULL_SOON
        return Level.NORMAL
