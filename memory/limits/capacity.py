"""Keeps the bot working on a Redis plan that fills up: tells, makes room, opens and closes intake.

Every process looks; one at a time, by lease, does something about it.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from time import monotonic, time

import structlog

from memory.behaviors.learning_behavior import LearningBehavior
from memory.limits.alerts import AlertLog, Level, News
from memory.limits.ballast import Ballast, reserve_bytes
from memory.limits.dropping import Dropped, Dropping
from memory.limits.fill_level import FillLevel, Gauge
from memory.store.store import Store

log = structlog.get_logger(__name__)

_EMBED_AGAIN_BELOW = 0.4
_TELL_ABOVE = 0.8
_DROP_UNTIL = 0.85
_DROP_ABOVE = 0.9
_LEASE_MS = 30_000
_IN_VAIN_S = 60.0
"""After a walk that found nothing to drop, nobody walks for so long."""

Tell = Callable[[News, FillLevel], Awaitable[bool]]
"""Tells admins; false when nobody could be reached now, so that it is tried again."""


@dataclass(frozen=True, slots=True)
class CapacityStats:
    """How full the plan is, and what was dropped since the beginning."""

    filling: FillLevel
    dropped: Dropped


class CapacityMonitor:
    """Tends one bot's share of a Redis plan; `reserve` says whether intake is closed."""

    def __init__(self, store: Store, told_bytes: int, tail: int) -> None:
        self.ballast = Ballast(store)
        self._store = store
        self._tail = tail
        self._gauge = Gauge(store.client, told_bytes)
        self._told = AlertLog(store)
        self._lease = store.lease(store.keys.capacity_lease, _LEASE_MS)
        self._dropping = Dropping(store, tail)
        self._seen: Level | None = None
        self._walk_from = 0.0

    def wait_for(self, behaviors: Sequence[LearningBehavior]) -> None:
        """Drop no message from now on that one of these has not learned from."""
        self._dropping = Dropping(self._store, self._tail, behaviors)

    async def stats(self) -> CapacityStats:
        """Count, for operators."""
        return CapacityStats(await self._gauge.read(), await self._told.dropped())

    async def tend(self, tell: Tell) -> Level:
        """Look, and do what is to be done unless another process is at it; return what was seen.

        Raise `StoreError`. Where nobody tells the plan's size, nothing is done.
        """
        filling = await self._gauge.read()
        if not filling.limit:
            return Level.CALM
        await self.ballast.look()
        if filling.share > 1:
            await self.ballast.spend()
        level = self._level(filling)
        is_quiet = level == self._seen and level <= Level.CALM and self.ballast.is_laid
        if not is_quiet and await self._lease.hold():
            try:
                level = await self._act(filling, tell)
            finally:
                await self._lease.release()
        self._seen = level
        return level

    async def _act(self, filling: FillLevel, tell: Tell) -> Level:
        is_tight = filling.share > _DROP_ABOVE or self.ballast.is_spent
        if is_tight and monotonic() >= self._walk_from:
            filling = await self._make_room(filling)
        ballast = reserve_bytes(filling.limit)
        if not self.ballast.is_laid and filling.used + ballast < _DROP_ABOVE * filling.limit:
            await self.ballast.lay(filling.limit)
        level, now = self._level(filling), time()
        if level is Level.ROOMY and await self._told.gave_up_vectors():
            await self._dropping.let_embed()
            await self._told.mark_embedded()
        for news in await self._told.untold(level, now):
            if await tell(news, filling):
                await self._told.mark(news, level, now)
        return level

    async def _make_room(self, filling: FillLevel) -> FillLevel:
        total = Dropped()
        try:
            async with aclosing(self._dropping.steps()) as steps:
                async for dropped in steps:
                    total += dropped
                    filling = await self._gauge.read()
                    if filling.share < _DROP_UNTIL or not await self._lease.hold():
                        break
        finally:
            await self._told.add(total)
        if total == Dropped():
            self._walk_from = monotonic() + _IN_VAIN_S
        log.warning("made room", **asdict(total), **asdict(filling))
        return filling

    def _level(self, filling: FillLevel) -> Level:
        if self.ballast.is_spent or filling.share > 1:
            return Level.FULL
        if filling.share > _TELL_ABOVE:
            return Level.FULL_SOON
        return Level.CALM if filling.share > _EMBED_AGAIN_BELOW else Level.ROOMY
