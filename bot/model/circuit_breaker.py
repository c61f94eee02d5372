"""A circuit breaker decides when a model that failed is asked again; it makes no requests.

A failure opens the circuit: the model rests, for two seconds unless set otherwise, then twice as
long each time, up to 40 s. After a rest one request at a time probes the model. One answer closes
the circuit.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

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
