"""Steps that are repeated while the process lives; checks of Redis."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from bot.commands.notices import AdminNotices
from memory.limits.capacity import CapacityMonitor, Level
from memory.store.client import RedisClient
from memory.store.errors import StoreError

log = structlog.get_logger(__name__)

MAX_CLOCK_S = 30
"""Beyond so many seconds what people are told about times is wrong."""
_POSTPONED_S = 2.0
"""When a step is tried again for which Redis was not available."""
_CAPACITY_WHEN_TIGHT_EVERY_S = 2.0

Step = Callable[[], Awaitable[float | None]]
"""Returns after how many seconds it has to run again at the latest, None if it does not matter."""


async def repeat(
    step: Step, name: str, every_s: float, sooner: asyncio.Event | None = None
) -> None:
    """Run a step every `every_s` seconds until cancelled, whether it fails or not.

    It runs earlier if it returned a shorter time, or once `sooner` is set. `name` stands
    for it in the log.
    """
    sooner = sooner or asyncio.Event()
    while True:
        wait_s = await _try(step, name)
        with suppress(TimeoutError):
            async with asyncio.timeout(every_s if wait_s is None else min(every_s, wait_s)):
                await sooner.wait()
        sooner.clear()


async def watch_clock(client: RedisClient) -> None:
    """Warn if this machine and Redis differ in time; raise `StoreError`."""
    ahead_s = await client.clock_ahead_s()
    if abs(ahead_s) > MAX_CLOCK_S:
        log.warning("clock differs from Redis", redis_ahead_s=round(ahead_s), look_at="NTP")


async def _try(step: Step, name: str) -> float | None:
    try:
        return await step()
    except StoreError as error:
        log.warning("periodic step postponed", step=name, reason=type(error).__name__)
        return _POSTPONED_S
    except Exception:  # the outer fence: the next run may succeed
        log.exception("periodic step failed", step=name)
    return None


class CapacityWatch:
    """Has the capacity monitor make room in Redis; runs more often while memory is scarce."""

    def __init__(self, monitor: CapacityMonitor, notices: AdminNotices) -> None:
        self._monitor = monitor
        self._notices = notices
        self._level = Level.NORMAL

    async def check(self) -> float | None:
        """Check once; return when to check again if that is soon. Raise `StoreError`."""
        level = await self._monitor.check(self._notices.tell)
        if level is not self._level:
            is_now, was = level.name.lower(), self._level.name.lower()
            log.warning("capacity changed", capacity=is_now, was=was)
        self._level = level
        return _CAPACITY_WHEN_TIGHT_EVERY_S if level >= Level.FULL_SOON else None
