"""Keeps the bot working on a Redis that fills up: every process reads how full it is.

If it is full, a process frees the ballast, and once there is space, it allocates it again.
"""

import sys
from collections import deque
from dataclasses import dataclass
from enum import IntEnum
from time import time

import structlog

from memory.store.store import Store

log = structlog.get_logger(__name__)

_BALLAST_SHARE = 50
_MIN_BALLAST_BYTES = 2**16
_MAX_BALLAST_BYTES = 2**22


@dataclass(frozen=True, slots=True)
class FillLevel:
    """Bytes used and bytes available; a `limit` of 0 means that it is unknown."""

    used: int
    limit: int

    @property
    def share(self) -> float:
        """Return the used share, 0 if the limit is unknown; above 1 Redis refuses writes."""
        return self.used / self.limit if self.limit else 0.0


class Ballast:
    """A key that takes up memory and is freed when Redis is full, so that running turns can finish.

    While it is released, intake must be closed: new messages would use up the freed memory.
    """

    def __init__(self, store: Store) -> None:
        self._client = store.client
        self._key = store.keys.ballast
        self._release = store.scripts["release_ballast"]
        self.is_released = self.is_allocated = False  # as this process has seen it last

    async def refresh(self) -> None:
        """See what other processes have done."""
        self._seen(await self._client.call("STRLEN", self._key))

    async def release(self) -> None:
        """Free the ballast; without one nothing happens."""
        self._seen(await self._release([self._key]))

    async def allocate(self, limit: int) -> None:
        """Take up memory again, for a Redis of `limit` bytes."""
        await self._client.call("SET", self._key, bytes(ballast_bytes(limit)))
        self.is_allocated, self.is_released = True, False

    def _seen(self, length: int) -> None:
        self.is_allocated, self.is_released = length > 1, length == 1


def ballast_bytes(limit: int) -> int:
    """Return the size of the ballast for a Redis of `limit` bytes."""
    return min(max(limit // _BALLAST_SHARE, _MIN_BALLAST_BYTES), _MAX_BALLAST_BYTES)


class Level(IntEnum):
    """How full Redis is, in the steps that matter."""

    NORMAL = 1
    FULL_SOON = 2
    FULL = 3


_FULL_SOON_ABOVE = 0.8
_BALLAST_BELOW = 0.9
_AGAIN_S = 2.0
_SAMPLE_EVERY_S = 60.0
_MAX_SAMPLES = 120


class CapacityMonitor:
    """Watches the capacity of Redis for one bot."""

    def __init__(self, store: Store, default_limit: int) -> None:
        self.ballast = Ballast(store)
        self._store = store
        self._default_limit = default_limit  # of a Redis that does not tell it; 0: unknown
        # What this process has seen in the last two hours (Unix seconds), oldest first.
        self.samples: deque[tuple[float, FillLevel]] = deque(maxlen=_MAX_SAMPLES)
        self.found = FillLevel(0, 0)  # by the last check of this process
        self.level = Level.NORMAL

    def room(self) -> int:
        """Return how many bytes may be stored for a moment without filling Redis up.

        A large value takes twice its size while a script writes it (measured on Valkey 9.1); the
        rest is for other turns. A Redis whose limit is unknown, or that this process has not looked
        at yet, has all the room that is asked for.
        """
        found = self.found
        return int(_FULL_SOON_ABOVE * found.limit - found.used) // 3 if found.limit else sys.maxsize

    async def fill_level(self) -> FillLevel:
        """Ask the server, in one round trip; of a Cluster one node stands for all."""
        info = await self._store.client.info("memory")
        limit = int(info.get("maxmemory") or 0) or self._default_limit
        return FillLevel(int(info.get("used_memory") or 0), limit)

    async def check(self) -> float | None:
        """Read how full Redis is, free or allocate the ballast, and note the level.

        If the limit of Redis is unknown, the level is normal. Return in how many seconds to check
        again, None if Redis is not full soon. Raise `StoreError`.
        """
        found = await self.fill_level()
        if not self.samples or time() - self.samples[-1][0] >= _SAMPLE_EVERY_S:
            self.samples.append((time(), found))
        ballast, level = self.ballast, Level.NORMAL
        if found.limit:
            await ballast.refresh()
            used_with_ballast = found.used + ballast_bytes(found.limit)
            if found.share > 1:
                await ballast.release()
            elif not ballast.is_allocated and used_with_ballast < _BALLAST_BELOW * found.limit:
                await ballast.allocate(found.limit)
            if ballast.is_released or found.share > 1:
                level = Level.FULL
            elif found.share > _FULL_SOON_ABOVE:
                level = Level.FULL_SOON
        if level is not self.level:
            was = self.level.name.lower()
            log.warning("capacity changed", capacity=level.name.lower(), was=was)
        self.found, self.level = found, level
        return _AGAIN_S if level >= Level.FULL_SOON else None
