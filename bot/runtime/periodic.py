"""Steps that are repeated while the process lives: checks of Redis, of the models, of the budget.

Every process checks. They agree in Redis on what admins have been told.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Literal

import structlog

from bot.commands.notices import AdminNotices
from bot.costs import Budget, shown
from bot.model.circuit_breaker import ModelCondition
from bot.model.model_errors import account_fault, setting_to_check
from memory.limits.capacity import CapacityMonitor, Level
from memory.memory import Memory
from memory.store.client import RedisClient
from memory.store.errors import StoreError

log = structlog.get_logger(__name__)

MAX_CLOCK_S = 30
"""Beyond so many seconds what people are told about times is wrong."""
_POSTPONED_S = 2.0
"""When a step is tried again for which Redis was not available."""
_MODELS_EVERY_S = 15.0
_CAPACITY_WHEN_TIGHT_EVERY_S = 2.0
_TELLING_MS = 60_000
_BUDGET_NOTICES = (100, 80)
"""Percent of the budget at which admins are told, the highest first."""

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


class ModelWatch:
    """Tells admins once that a model fails for everybody, and once that it answers again.

    One hash in Redis holds when each model last answered, and since when admins know that it does
    not. It changes after they were told. One process at a time tells them. If it dies, another one
    tells them, in doubt twice.
    """

    def __init__(
        self,
        memory: Memory,
        notices: AdminNotices,
        conditions: Sequence[ModelCondition],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._client = memory.client
        self._key = memory.keys.models
        self._notices = notices
        self._conditions = conditions
        self._clock = clock
        self._telling = memory.store.lease(f"{self._key}:telling", _TELLING_MS)
        self._reported: dict[str, float] = {}

    async def run(self) -> None:
        """Check until cancelled; soon after a fault of the operator's account."""
        sooner = asyncio.Event()
        for condition in self._conditions:
            condition.tell = sooner.set
        await repeat(self.check, "models", _MODELS_EVERY_S, sooner)

    async def check(self) -> float | None:
        """Check each model once; raise `StoreError`. Return in how many seconds to check again."""
        for condition in self._conditions:
            await self._check(condition)
        sure_in_s = min((each.is_sure_in_s for each in self._conditions), default=math.inf)
        return sure_in_s if 0 < sure_in_s < _MODELS_EVERY_S else None

    async def _check(self, condition: ModelCondition) -> None:
        part, answered_at = condition.part, condition.answered_at
        if not answered_at and not condition.failing_since:
            return
        if answered_at > self._reported.get(part, 0.0):
            await self._client.call("HSET", self._key, f"{part}:answered", answered_at)
            self._reported[part] = answered_at
        if await self._news(condition) and await self._telling.hold():
            try:
                await self._tell(condition, await self._news(condition))
            finally:
                await self._telling.release()

    async def _news(self, condition: ModelCondition) -> Literal["on", "off"] | None:
        """Return what admins do not know yet about a model."""
        part = condition.part
        answered, off = await self._client.call(
            *("HMGET", self._key, f"{part}:answered", f"{part}:off")
        )
        newest = max(float(answered or 0), condition.answered_at)
        if condition.fails_for_all and newest < condition.failing_since:
            return None if off else "off"
        return "on" if off and newest > float(off) else None

    async def _tell(self, condition: ModelCondition, news: Literal["on", "off"] | None) -> None:
        mark, since = f"{condition.part}:off", self._clock()
        if news == "on":
            if await self._notices.tell_of_model(f"{condition.part}_on", "", ""):
                await self._client.call("HDEL", self._key, mark)
        elif news == "off":
            error = condition.error
            reason = " ".join(filter(None, (str(error.status or ""), error.code)))
            setting = setting_to_check(error, condition.setting)
            reason = reason or type(error).__name__
            fault = account_fault(error) if condition.part == "answers" else ""
            kind = f"{condition.part}_{fault or 'off'}"
            if await self._notices.tell_of_model(kind, reason, setting):
                await self._client.call("HSET", self._key, mark, since)


class BudgetWatch:
    """Tells admins once a month that most of the budget is spent, and once that all of it is."""

    def __init__(self, budget: Budget, notices: AdminNotices) -> None:
        self._budget = budget
        self._notices = notices

    async def check(self) -> None:
        """Tell admins what they have not been told this month; raise `StoreError`."""
        budget, usage = self._budget, self._budget.usage
        if not budget.amount:
            return
        spent = await budget.spent()
        share = 100 * spent / budget.amount
        for at, percent in enumerate(_BUDGET_NOTICES):
            if share < percent:
                continue
            if await usage.claim_notice(time.time(), percent):
                values = {"percent": percent, "spent": shown(spent), "budget": shown(budget.amount)}
                if await self._notices.say("notices.budget", values):
                    for passed in _BUDGET_NOTICES[at:]:
                        await usage.mark_reported(time.time(), passed)
            return
