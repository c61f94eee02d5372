"""When a model that failed is asked again, and since when it fails; this makes no requests.

A failure opens the circuit: the model rests, for two seconds unless set otherwise, then twice as
long each time, up to 40 s. After a rest one request at a time probes the model. One answer closes
the circuit.
"""

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal, TypeAlias

from bot.model.call import CallReport
from bot.model.model_errors import ModelError, ModelRefused, account_fault

_MAX_DOUBLINGS = 100
"""Half a day of failures would reach 1,024, where a float overflows."""


@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
    """One request to the model: when it began, and whether it probes a resting model."""

    began: float
    is_probe: bool


@dataclass(slots=True, eq=False)
class CircuitBreaker:
    """The circuit of one model; a rest takes `first_s` to `max_s` seconds."""

    clock: Callable[[], float] = time.monotonic
    _: KW_ONLY
    first_s: float = 2.0
    max_s: float = 40.0
    silence: asyncio.Event = field(default_factory=asyncio.Event)  # it does not answer in time
    _failures: int = 0
    _until: float = 0.0
    _probe: Attempt | None = None

    @property
    def is_open(self) -> bool:
        """Whether the model failed and has not answered since."""
        return self._failures > 0

    @property
    def rests_s(self) -> float:
        """In how many seconds to ask again; more than 0 also while a probe runs."""
        return max(self._until - self.clock(), self.first_s / 10)

    def begin(self) -> Attempt | None:
        """Return an attempt, or None if the model must not be asked now."""
        now = self.clock()
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
        rest_s = min(self.first_s * 2.0**doublings, max_s or self.max_s)
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


@dataclass(slots=True, eq=False)
class ModelCondition:
    """How one model works, as far as this process knows. Times are Unix seconds, 0 for never."""

    part: Part
    setting: str  # names the model in the environment
    clock: Callable[[], float] = time.time
    answered_at: float = 0.0
    failing_since: float = 0.0
    error: ModelError = field(default_factory=ModelError)
    breaker: CircuitBreaker | None = None  # decides when the model is asked, if any does
    tell: Callable[[], None] | None = None  # called when a fault of the account fails a call
    _failures: int = 0

    def observe(self, report: CallReport) -> None:
        """Note how a call ended; one that was cancelled says nothing."""
        if report.error is None:
            self.answered()
        elif isinstance(report.error, ModelError):
            self.failed(report.error)

    def answered(self) -> None:
        """Note an answer: earlier failures no longer count."""
        self.answered_at = self.clock()
        self.failing_since, self._failures = 0.0, 0

    def failed(self, error: ModelError) -> None:
        """Note a call without an answer."""
        self.failing_since = self.failing_since or self.clock()
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
        return max(0.0, self.failing_since + after_s - self.clock())

    @property
    def fails_for_all(self) -> bool:
        """Whether no call was answered for a while, and one message cannot be the reason."""
        if self.is_sure_in_s > 0:
            return False
        error = self.error
        is_one_message = isinstance(error, ModelRefused) and error.may_concern_messages
        return self._failures >= _CERTAIN_FAILURES or not is_one_message
