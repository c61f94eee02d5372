"""Keeps the bot working on a Redis that fills up: alerts operators, frees the ballast.

Every process reads how full it is, and frees the ballast if it is full. Only the process that holds
a lease alerts operators and allocates the ballast again. Nothing is sent here.
"""

import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from time import time
from typing import Literal

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


CapacityAlert = Literal["filling", "full"]
"""What admins have to be told."""

_KINDS: dict[Level, CapacityAlert] = {Level.FULL_SOON: "filling", Level.FULL: "full"}

_AGAIN_S = 86_400
_ALERT_ABOVE = 0.8
_BALLAST_BELOW = 0.9
_LEASE_MS = 30_000
_SAMPLE_EVERY_S = 60.0
_MAX_SAMPLES = 120

SendAlert = Callable[[CapacityAlert, FillLevel], Awaitable[bool]]
"""Sends an alert to admins; false if no admin could be reached now and it must be tried again."""


class CapacityMonitor:
    """Watches the capacity of Redis for one bot."""

    def __init__(self, store: Store, default_limit: int) -> None:
        self.ballast = Ballast(store)
        self._store = store
        self._default_limit = default_limit  # of a Redis that does not tell it; 0: unknown
        self._lease = store.lease(store.keys.capacity_lease, _LEASE_MS)
        # What this process has seen in the last two hours (Unix seconds), oldest first.
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
        """Ask the server, in one round trip; of a Cluster one node stands for all."""
        info = await self._store.client.info("memory")
        limit = int(info.get("maxmemory") or 0) or self._default_limit
        return FillLevel(int(info.get("used_memory") or 0), limit)

    async def check(self, send_alert: SendAlert) -> Level:
        """Read how full Redis is, act unless another process does, and return the level.

        Does nothing if the limit of Redis is unknown. Raise `StoreError`.
        """
        fill_level = await self.fill_level()
        if not self.samples or time() - self.samples[-1][0] >= _SAMPLE_EVERY_S:
            self.samples.append((time(), fill_level))
        if not fill_level.limit:
            return self._noticed(Level.NORMAL)
        await self.ballast.refresh()
        if fill_level.share > 1:
            await self.ballast.release()
        level = self._level(fill_level)
        is_quiet = level == self._seen and level <= Level.NORMAL and self.ballast.is_allocated
        if not is_quiet and await self._lease.hold():
            try:
                used_with_ballast = fill_level.used + ballast_bytes(fill_level.limit)
                has_space = used_with_ballast < _BALLAST_BELOW * fill_level.limit
                if not self.ballast.is_allocated and has_space:
                    await self.ballast.allocate(fill_level.limit)

                level, now = self._level(fill_level), time()
                alert = await self.due_alert(level, now)
                if alert and await send_alert(alert, fill_level):
                    await self._note({f"reported:{alert}": int(now), "level": int(level)})
            finally:
                await self._lease.release()
        return self._noticed(level)

    def _noticed(self, level: Level) -> Level:
        was, self._seen = self._seen or Level.NORMAL, level
        if level is not was:
            log.warning("capacity changed", capacity=level.name.lower(), was=was.name.lower())
        return level

    async def due_alert(self, level: Level, now: float) -> CapacityAlert | None:
        """Return the alert that admins must get now; `now` is in Unix seconds.

        If the level has fallen, notes that, so that the next crossing is reported again.
        """
        stored = await self._store.client.call("HGETALL", self._store.keys.capacity)
        fields = {name.decode(): value.decode() for name, value in stored.items()}
        noted = int(fields.get("level", Level.NORMAL))
        kind = _KINDS.get(level)
        reported_at = float(fields.get(f"reported:{kind}", 0))
        if level > noted and kind is not None and now - reported_at >= _AGAIN_S:
            return kind
        if level != noted:
            await self._note({"level": int(level)})
        return None

    async def _note(self, values: Mapping[str, int]) -> None:
        """Note what admins were told, for all processes and even if Redis is full."""
        await self._store.scripts["note_capacity"]([self._store.keys.capacity], values)

    def _level(self, fill_level: FillLevel) -> Level:
        if self.ballast.is_released or fill_level.share > 1:
            return Level.FULL
        if fill_level.share > _ALERT_ABOVE:
            return Level.FULL_SOON
        return Level.NORMAL
