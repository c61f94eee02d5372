"""Tells operators that Redis fills up, that a model fails for all, that the budget is mostly spent.

Every process checks. They agree in Redis on what operators have been told.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import time

from bot.commands.notices import OperatorNotices, figures
from bot.costs import Budget
from bot.feature import Feature, Services
from bot.model.model_errors import ModelRefused, account_fault, setting_to_check
from bot.model.resilience import ModelCondition
from bot.runtime.maintenance import repeat
from memory.limits.capacity import Level
from memory.limits.usage import expires_at, month_of
from memory.memory import Memory
from memory.store.store import Scripts

_LUA = Path(__file__).parent / "lua"
_AGAIN_S = 86_400  # how long operators do not hear again that Redis has reached the same level
_LEVELS = {Level.FULL_SOON: "filling", Level.FULL: "full"}
_MODELS_EVERY_S = 15.0
_TELLING_MS = 60_000
_FOR_ALL_AFTER_S = 60
_FAULT_AFTER_S = 3
_CERTAIN_FAILURES = 2
_BUDGET_NOTICES = (100, 80)  # percent of the budget at which operators are told, the highest first


def feature(services: Services) -> Feature:
    """Return the feature."""
    memory, telling = services.memory, Telling(services.memory, services.notices)
    capacity = CapacityNews(memory)
    budget = BudgetNews(memory, services.budget)
    models = ModelWatch(memory, telling, services.models.conditions)
    tell_capacity = partial(repeat, partial(telling.tell, capacity.find), "capacity alerts", 5.0)
    tell_budget = partial(repeat, partial(telling.tell, budget.find), "budget", 5.0)
    return Feature(name="alerts", tasks=[tell_capacity, tell_budget, models.run])


def fails_in_s(condition: ModelCondition) -> float:
    """Return after how many more seconds without an answer a model fails; inf: it works.

    After a fault of the account this is as soon as the second model has had time to answer.
    """
    if not condition.failing_since:
        return math.inf
    after_s = _FAULT_AFTER_S if account_fault(condition.error) else _FOR_ALL_AFTER_S
    return max(0.0, condition.failing_since + after_s - condition.clock())


@dataclass(frozen=True, slots=True)
class News:
    """A sentence for operators, by its key in the table `notices`; `note` stores that they know."""

    key: str
    values: Mapping[str, object]
    note: Callable[[], Awaitable[object]]


class Telling:
    """Tells operators each piece of news once.

    One process at a time tells them, and that they know is written after they were told. If it dies
    in between, another one tells them again.
    """

    def __init__(self, memory: Memory, notices: OperatorNotices) -> None:
        self._memory = memory
        self._notices = notices

    async def tell(self, find: Callable[[], Awaitable[News | None]]) -> None:
        """Tell what `find` returns; if nobody was reached, the next call tries it again."""
        # One of its own for each call, because several checks of this process run at once.
        lease = self._memory.store.lease(f"{self._memory.keys.models}:telling", _TELLING_MS)
        if not await find() or not await lease.hold():
            return
        try:
            news = await find()  # another process may have told it meanwhile
            if news and await self._notices.say(f"notices.{news.key}", news.values):
                await news.note()
        finally:
            await lease.release()


class CapacityNews:
    """That Redis is filling up, and that it is full: each once a day at most.

    One hash in Redis holds the level that operators know, so that its next rise is told.
    """

    def __init__(self, memory: Memory, clock: Callable[[], float] = time) -> None:
        self._client = memory.client
        self._key = memory.keys.capacity
        self._note = partial(Scripts(memory.client, _LUA)["note_told"], [memory.keys.capacity])
        self._capacity = memory.capacity
        self._clock = clock
        self._quiet_until = 0  # the level is normal, and was noted as such within an hour

    async def find(self) -> News | None:
        """Return what operators do not know yet; note a level that fell; raise `StoreError`."""
        level, now = self._capacity.level, int(self._clock())
        is_unknown = not self._capacity.found.limit  # also before the first check of this process
        if is_unknown or (now < self._quiet_until and level is Level.NORMAL):
            return None
        self._quiet_until = 0
        stored = await self._client.call("HGETALL", self._key)
        told = {name.decode(): int(value) for name, value in stored.items()}
        known, kind = told.get("level", Level.NORMAL), _LEVELS.get(level)
        if kind and level > known and now - told.get(f"reported:{kind}", 0) >= _AGAIN_S:
            note = partial(self._note, {"level": level, f"reported:{kind}": now})
            return News(kind, figures(self._capacity.found), note)
        if level != known:
            await self._note({"level": level})
        # A process that saw a rise may die before its end, so the others look, too.
        self._quiet_until = now + 3_600 if level is Level.NORMAL else 0
        return None


class ModelWatch:
    """Tells operators once that a model fails for everybody, and once that it answers again.

    One hash in Redis holds when each model last answered, and since when operators know that it
    does not.
    """

    def __init__(
        self, memory: Memory, telling: Telling, conditions: Sequence[ModelCondition]
    ) -> None:
        self._client = memory.client
        self._key = memory.keys.models
        self._note_told = Scripts(memory.client, _LUA)["note_told"]
        self._telling = telling
        self._conditions = conditions
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
        sure_in_s = min(map(fails_in_s, self._conditions), default=math.inf)
        return sure_in_s if 0 < sure_in_s < _MODELS_EVERY_S else None

    async def _check(self, condition: ModelCondition) -> None:
        part, answered_at = condition.part, condition.answered_at
        if not answered_at and not condition.failing_since:
            return
        if answered_at > self._reported.get(part, 0.0):
            await self._note_told([self._key], {f"{part}:answered": answered_at})
            self._reported[part] = answered_at
        await self._telling.tell(partial(self._news, condition))

    async def _news(self, condition: ModelCondition) -> News | None:
        part, error, now = condition.part, condition.error, condition.clock()
        mark = f"{part}:off"
        answered, off = await self._client.call("HMGET", self._key, f"{part}:answered", mark)
        newest = max(float(answered or 0), condition.answered_at)
        is_one_message = isinstance(error, ModelRefused) and error.may_concern_messages
        is_certain = condition.failures >= _CERTAIN_FAILURES or not is_one_message
        # It fails for all if no call was answered for a while, and not because of one message.
        fails_for_all = fails_in_s(condition) == 0 and is_certain
        # Each message asks the model that answers. Others rest for a while after a failure, so they
        # count as failing only if they fail again after that.
        is_tried = part == "answers" or account_fault(error)
        failed_again = condition.failed_at >= condition.failing_since + _FOR_ALL_AFTER_S
        fails_for_all = fails_for_all and bool(is_tried or failed_again)
        if fails_for_all and newest < condition.failing_since:
            reason = " ".join(filter(None, (str(error.status or ""), error.code)))
            fault = account_fault(error) if part == "answers" else ""
            look_at = setting_to_check(error, condition.setting) or "–"
            values = {"reason": reason or type(error).__name__, "look_at": look_at}
            note = partial(self._note_told, [self._key], {mark: now})
            return None if off else News(f"{part}_{fault or 'off'}", values, note)
        if off and newest > float(off):
            return News(f"{part}_on", {}, partial(self._client.call, "HDEL", self._key, mark))
        return None


@dataclass(frozen=True, slots=True, eq=False)
class BudgetNews:
    """Once a month, that most of the budget is spent, and once that all of it is.

    One key for each of the two says that operators were told; it expires with the sums of its
    month. A budget may be set while the bot runs.
    """

    memory: Memory
    budget: Budget

    async def find(self) -> News | None:
        """Return what operators have not been told this month; raise `StoreError`."""
        client, amount = self.memory.client, self.budget.settings.budget_per_month
        if not amount:
            return None
        spent, month = await self.budget.spent(), month_of(time())
        passed = [each for each in _BUDGET_NOTICES if 100 * spent >= each * amount]
        keys = [self.memory.keys.usage(month, f"reported:{percent}") for percent in passed]
        if not keys or await client.call("EXISTS", keys[0]):
            return None
        note = Scripts(client, _LUA)["note_for_month"]
        told = [note.command([key], [expires_at(month)]) for key in keys]
        values = {"percent": passed[0], "spent": spent, "budget": amount}
        return News("budget", values, partial(client.pipeline, told))
