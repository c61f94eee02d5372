"""Since when one model fails, and why; admins are told from it (`bot/runtime/periodic.py`)."""

import math
import time
from collections.abc import Callable
from typing import Literal, TypeAlias

from bot.model.call_report import CallReport
from bot.model.circuit_breaker import CircuitBreaker
from bot.model.model_errors import ModelError, ModelRefused, account_fault

Part: TypeAlias = Literal["answers", "learning", "vectors"]
"""What a model is for."""


_FOR_ALL_AFTER_S = 60
_FAULT_AFTER_S = 3
_CERTAIN_FAILURES = 2


class ModelCondition:
    """How one model works, as far as this process knows.

    `setting` names the model in the environment. Times are Unix seconds, 0 for never. `breaker`
    decides when the model is asked, if any does. `tell` is called when a call fails by a fault of
    the operator's account.
    """

    def __init__(self, part: Part, setting: str, clock: Callable[[], float] = time.time) -> None:
        self.part: Part = part
        self.setting = setting
        self.answered_at = 0.0
        self.failing_since = 0.0
        self.error = ModelError()
        self.breaker: CircuitBreaker | None = None
        self.tell: Callable[[], None] | None = None
        self._failures = 0
        self._clock = clock

    def observe(self, report: CallReport) -> None:
        """Note how a call ended; one that was cancelled says nothing."""
        if report.error is None:
            self.answered()
        elif isinstance(report.error, ModelError):
            self.failed(report.error)

    def answered(self) -> None:
        """Note an answer: earlier failures no longer count."""
        self.answered_at = self._clock()
        self.failing_since, self._failures = 0.0, 0

    def failed(self, error: ModelError) -> None:
        """Note a call without an answer."""
        self.failing_since = self.failing_since or self._clock()
        self._failures += 1
        self.error = error
        if account_fault(error) and self.tell:
            self.tell()

    @property
    def is_sure_in_s(self) -> float:
        """In how many seconds without an answer the model counts as failing; inf: it works.

        A fault of the account is sure as soon as the second model had its time to answer.
        """
        if not self.failing_since:
            return math.inf
        after_s = _FAULT_AFTER_S if account_fault(self.error) else _FOR_ALL_AFTER_S
        return max(0.0, self.failing_since + after_s - self._clock())

    @property
    def fails_for_all(self) -> bool:
        """Whether no call was answered for a while, and one message cannot be the reason."""
        if self.is_sure_in_s > 0:
            return False
        error = self.error
        is_one_message = isinstance(error, ModelRefused) and error.may_concern_messages
        return self._failures >= _CERTAIN_FAILURES or not is_one_message
