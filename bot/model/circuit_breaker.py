"""When a model that failed is asked again, and since when it fails; this makes no requests.

A failure opens the circuit: the model rests, for two seconds unless set otherwise, then twice as
long each time, up to 40 s. After a rest one request at a time probes the model. One answer closes
the circuit.
"""

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from bot.model.call import CallReport
from bot.model.model_errors import ModelError, ModelRefused, account_fault

_FIRST_REST_S = 2.0
_MAX_REST_S = 40.0
_MAX_DOUBLINGS = 100
"""Half a day of failures would reach 1,024, where a float overflows."""


@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
    """One request to the model: when it began, and whether it probes a resting model."""

    began: float
    is_probe: bool


class CircuitBreaker:
    """The circuit of one model. `silence` is set while the model does not answer in time."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        first_s: float = _FIRST_REST_S,
        max_s: float = _MAX_REST_S,
    ) -> None:
        self._clock = clock
        self._first_s = first_s
        self._max_s = max_s
        self._failures = 0
        self._until = 0.0
        self._probe: Attempt | None = None
        self.silence = asyncio.Event()

    @property
    def is_open(self) -> bool:
        """Whether the model failed and has not answered since."""
        return self._failures > 0

    @property
    def rests_s(self) -> float:
        """In how many seconds to ask again; more than 0 also while a probe runs."""
        return max(self._until - self._clock(), self._first_s / 10)

    def begin(self) -> Attempt | None:
        """Return an attempt, or None if the model must not be asked now."""
        now = self._clock()
        if not self.is_open:
            return Attempt(now, is_probe=False)
        if self._probe is not None or now < self._until:
            return None
        self._probe = Attempt(now, is_probe=True)
        return self._probe

    def answered(self, attempt: Attempt) -> bool:
        """Close the circuit; return whether it was open."""
        was_open = self.is_open
        self.abandoned(attempt)
        self._failures = 0
        self.silence.clear()
        return was_open

    def failed(self, attempt: Attempt, *, in_silence: bool, max_s: float | None = None) -> float:
        """Begin a rest, or a longer one after a probe; return its seconds.

        Attempts that ran when the rest began do not make it longer. The rest is counted from the
        start of the attempt, so that a probe that hangs does not delay the next one.
        """
        if not self.is_open or attempt is self._probe:
            self._failures += 1
        doublings = min(self._failures - 1, _MAX_DOUBLINGS)
        rest_s = min(self._first_s * 2.0**doublings, max_s or self._max_s)
        self._until = max(self._until, attempt.began + rest_s)
        self.abandoned(attempt)
        if in_silence:
            self.silence.set()
        return rest_s

    def abandoned(self, attempt: Attempt) -> None:
        """Note that an attempt ended; without a result, it changes nothing else."""
        if attempt is self._probe:
            self._probe = None


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
