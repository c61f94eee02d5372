"""Tells admins once when a model fails for everybody, and once when it is back.

Every process looks; they agree by one hash in Redis: when a model last answered, and since when
admins know that it does not.
"""

import time
from collections.abc import Callable, Sequence

from bot.commands.notices import AdminNotices
from bot.model.guarded import ModelCondition
from bot.model.model_errors import setting_to_check
from bot.runtime.watching import repeat
from memory.memory import Memory

_EVERY_S = 15.0


class ModelWatch:
    """Looks at the condition of all models again and again."""

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
        self._reported: dict[str, float] = {}

    async def run(self) -> None:
        """Watch until cancelled."""
        await repeat(self.look, "models", _EVERY_S)

    async def look(self) -> None:
        """Look once at each model."""
        for condition in self._conditions:
            await self._look_at(condition)

    async def _look_at(self, condition: ModelCondition) -> None:
        part, answered_at = condition.part, condition.answered_at
        if not answered_at and not condition.failing_since:
            return
        if answered_at > self._reported.get(part, 0.0):
            await self._client.call("HSET", self._key, f"{part}:answered", answered_at)
            self._reported[part] = answered_at
        answered, off = await self._client.call(
            *("HMGET", self._key, f"{part}:answered", f"{part}:off")
        )
        newest = max(float(answered or 0), answered_at)
        if off is not None and newest > float(off):
            # Only one process gets to remove it.
            if await self._client.call("HDEL", self._key, f"{part}:off"):
                await self._notices.tell_of_model(f"{part}_on", "", "")
        elif off is None and condition.fails_for_all and newest < condition.failing_since:
            await self._tell_off(condition)

    async def _tell_off(self, condition: ModelCondition) -> None:
        name, error = f"{condition.part}:off", condition.error
        if not await self._client.call("HSETNX", self._key, name, self._clock()):
            return
        reason = " ".join(filter(None, (str(error.status or ""), error.code)))
        setting = setting_to_check(error, condition.setting)
        kind = f"{condition.part}_off"
        if not await self._notices.tell_of_model(kind, reason or type(error).__name__, setting):
            await self._client.call("HDEL", self._key, name)
