"""Tells operators when a model fails for everybody, and when most of the budget is spent.

Every process checks. They agree in Redis on what operators have been told.
"""

import asyncio
import math
import time
from collections.abc import Sequence
from typing import Literal

from bot.commands.notices import OperatorNotices
from bot.costs import Budget
from bot.feature import Feature, Services
from bot.model.model_errors import ModelRefused, account_fault, setting_to_check
from bot.model.resilience import ModelCondition
from bot.runtime.maintenance import repeat
from memory.limits.usage import expires_at, month_of
from memory.memory import Memory
from memory.store.store import NamedLease

_MODELS_EVERY_S = 15.0
_TELLING_MS = 60_000
_FOR_ALL_AFTER_S = 60
_FAULT_AFTER_S = 3
_CERTAIN_FAILURES = 2
_BUDGET_EVERY_S = 5.0
_BUDGET_NOTICES = (100, 80)  # percent of the budget at which operators are told, the highest first


def feature(services: Services) -> Feature:
    """Return the feature."""
    notices = services.notices
    models = ModelWatch(services.memory, notices, services.models.conditions)
    budget = BudgetWatch(services.memory, services.budget, notices)
    return Feature(name="alerts", tasks=(models.run, budget.run))


def fails_in_s(condition: ModelCondition) -> float:
    """Return after how many more seconds without an answer a model fails; inf: it works.

    After a fault of the account this is as soon as the second model has had time to answer.
    """
    if not condition.failing_since:
        return math.inf
    after_s = _FAULT_AFTER_S if account_fault(condition.error) else _FOR_ALL_AFTER_S
    return max(0.0, condition.failing_since + after_s - condition.clock())


def _telling(memory: Memory) -> NamedLease:
    """Return the lease of the process that tells operators something."""
    return memory.store.lease(f"{memory.keys.models}:telling", _TELLING_MS)


class ModelWatch:
    """Tells operators once that a model fails for everybody, and once that it answers again.

    One hash in Redis holds when each model last answered, and since when operators know that it
    does not. That they know is written after they were told. One process at a time tells them. If
    it dies in between, another one tells them again.
    """

    def __init__(
        self, memory: Memory, notices: OperatorNotices, conditions: Sequence[ModelCondition]
    ) -> None:
        self._client = memory.client
        self._key = memory.keys.models
        self._notices = notices
        self._conditions = conditions
        self._telling = _telling(memory)
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
            await self._client.call("HSET", self._key, f"{part}:answered", answered_at)
            self._reported[part] = answered_at
        if not await self._news(condition) or not await self._telling.hold():
            return
        try:
            mark, since = f"{part}:off", condition.clock()
            news = await self._news(condition)  # another process may have told them meanwhile
            if news == "on" and await self._notices.say(f"notices.{part}_on", {}):
                await self._client.call("HDEL", self._key, mark)
            elif news == "off":
                error = condition.error
                reason = " ".join(filter(None, (str(error.status or ""), error.code)))
                fault = account_fault(error) if part == "answers" else ""
                look_at = setting_to_check(error, condition.setting) or "–"
                values = {"reason": reason or type(error).__name__, "look_at": look_at}
                if await self._notices.say(f"notices.{part}_{fault or 'off'}", values):
                    await self._client.call("HSET", self._key, mark, since)
        finally:
            await self._telling.release()

    async def _news(self, condition: ModelCondition) -> Literal["on", "off"] | None:
        part = condition.part
        fields = f"{part}:answered", f"{part}:off"
        answered, off = await self._client.call("HMGET", self._key, *fields)
        newest = max(float(answered or 0), condition.answered_at)
        error = condition.error
        is_one_message = isinstance(error, ModelRefused) and error.may_concern_messages
        is_certain = condition.failures >= _CERTAIN_FAILURES or not is_one_message
        # It fails for all if no call was answered for a while, and not because of one message.
        fails_for_all = fails_in_s(condition) == 0 and is_certain
        if fails_for_all and newest < condition.failing_since:
            return None if off else "off"
        return "on" if off and newest > float(off) else None


class BudgetWatch:
    """Tells operators once a month that most of the budget is spent, and once that all of it is.

    One key for each of the two says that they were told; it expires with the sums of its month.
    """

    def __init__(self, memory: Memory, budget: Budget, notices: OperatorNotices) -> None:
        self._memory = memory
        self._budget = budget
        self._notices = notices
        self._telling = _telling(memory)

    async def run(self) -> None:
        """Check until cancelled; a budget may be set while the bot runs."""
        await repeat(self.check, "budget", _BUDGET_EVERY_S)

    async def check(self) -> None:
        """Tell operators what they have not been told this month; raise `StoreError`."""
        budget = self._budget
        if not budget.amount:
            return
        spent, month = await budget.spent(), month_of(time.time())
        passed = [each for each in _BUDGET_NOTICES if 100 * spent >= each * budget.amount]
        keys = [self._memory.keys.usage(month, f"reported:{percent}") for percent in passed]
        if keys and not await self._is_told(keys[0]) and await self._telling.hold():
            try:
                values = {"spent": spent, "budget": budget.amount}
                if not await self._is_told(keys[0]) and await self._notices.say(
                    "notices.budget", {"percent": passed[0], **values}
                ):
                    told = ("reported", "EXAT", expires_at(month))
                    await self._memory.client.pipeline([("SET", key, *told) for key in keys])
            finally:
                await self._telling.release()

    async def _is_told(self, key: str) -> bool:
        return bool(await self._memory.client.call("EXISTS", key))
