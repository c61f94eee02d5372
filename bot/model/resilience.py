"""Resilience: which model is asked, and when a model that fails is asked again.

CircuitBreaker     when a model that failed is asked again; makes no requests
ModelCondition     since when a model fails, and why; lets it rest while it fails for everybody
Resilient          asks one model, or the second one while the first one fails
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import structlog

from bot.model.call import payer, time_limit
from bot.model.model_errors import (
    CUT_SHORT,
    NO_CREDIT,
    NO_CREDIT_CODES,
    AnswerIncomplete,
    AnswerUnreadable,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    NotAModel,
    account_fault,
    reason_of,
)
from memory.store.tasks import end_tasks
from memory.text.internal_model import ModelTrouble

log = structlog.get_logger(__name__)

_MAX_DOUBLINGS = 100  # half a day of failures would reach 1,024, where a float overflows


@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
    """One request to the model: when it began, and whether it probes a resting model."""

    began: float
    is_probe: bool


@dataclass(slots=True, eq=False)
class CircuitBreaker:
    """The circuit of one model.

    A failure opens it: the model rests for `first_s` seconds, then twice as long each time, up to
    `max_s`. After a rest one request at a time probes the model. One answer closes the circuit.
    Every attempt that was begun has to be ended.
    """

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

    def answered(self) -> bool:
        """Close the circuit; return whether it was open."""
        was_open = self.is_open
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
        if in_silence:
            self.silence.set()
        return rest_s

    def ended(self, attempt: Attempt) -> None:
        """Note that an attempt is over, whether or not it had a result."""
        if attempt is self._probe:
            self._probe = None


Part: TypeAlias = Literal["answers", "learning", "vectors"]  # what a model is for


_FIRST_REST_S, _MAX_REST_S = 60.0, 86_400.0
_MAX_OUTAGE_REST_S = 900.0
"""For trouble that ends without the operator: a server that is down or overloaded."""

_MAX_DOUBTS = 20
"""A failure that one call may have caused adds one doubt. One person has at most `_MAX_OF_PERSON`,
and so have all groups together: a filter that refuses the texts of one person stops the model for
nobody else. An outage adds half of the maximum, because it may pass at once."""
_MAX_OF_PERSON = 9

_ADVICE: Mapping[Part, str] = {
    "learning": "messages are still answered, but nothing is learned from them for now",
    "vectors": "recall uses words alone; set OPENAI_EMBEDDING_MODEL=off if this server has none",
}

_HEAD_START_S = 0.5  # of a first model that may be silent, before we ask the second one too
_PROBE_S = 40.0  # a probe that takes longer counts as a failure, so that the next one can begin
# Codes that concern the account or the model, whatever the status is.
_ACCOUNT_CODES = (*NO_CREDIT_CODES, "model_not_found")

_Model = TypeVar("_Model")
_Answer = TypeVar("_Answer")
_Call: TypeAlias = Callable[[_Model], Coroutine[Any, Any, _Answer]]


@dataclass(slots=True, eq=False)
class ModelCondition:
    """How one model works, as far as this process knows. Times are Unix seconds, 0 for never.

    `noted` only watches calls. `attempt` also keeps them from a model that fails for everybody; it
    rests from a minute up to a day. A failure that one call may have caused counts only after many
    in a row, from several people. One answer ends the rest.
    """

    part: Part
    setting: str  # names the model in the environment
    clock: Callable[[], float] = time.time
    breaker: CircuitBreaker = field(  # decides when the model is asked
        default_factory=lambda: CircuitBreaker(first_s=_FIRST_REST_S, max_s=_MAX_REST_S)
    )
    answered_at: float = 0.0
    failing_since: float = 0.0
    failed_at: float = 0.0  # the newest failure
    error: ModelError = field(default_factory=ModelError)
    tell: Callable[[], None] | None = None  # called when a fault of the account fails a call
    failures: int = 0  # since it answered
    _doubts: Counter[int | None] = field(default_factory=Counter)  # by person; None is everybody

    def answered(self) -> None:
        """Note an answer: earlier failures no longer count."""
        self.answered_at = self.clock()
        self.failing_since, self.failures = 0.0, 0

    def failed(self, error: ModelError) -> None:
        """Note a call without an answer."""
        self.failed_at = self.clock()
        self.failing_since = self.failing_since or self.failed_at
        self.failures += 1
        self.error = error
        if account_fault(error) and self.tell:
            self.tell()

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note how the call in the block ends; one that is cancelled says nothing."""
        try:
            yield
        except ModelError as error:
            self.failed(error)
            raise
        self.answered()

    @contextmanager
    def attempt(self, trouble: type[ModelTrouble]) -> Iterator[None]:
        """Guard one call in the block; raise `trouble` if the model rests, or begins to rest."""
        attempt = self.breaker.begin()
        if attempt is None:
            raise trouble("resting", rests_s=self.breaker.rests_s)
        try:
            with self.noted():
                yield
            self._doubts.clear()
            if self.breaker.answered():
                log.info("model on again", part=self.part)
        except ModelError as error:
            if self._note_failure(attempt, error):
                raise trouble(type(error).__name__, rests_s=self.breaker.rests_s) from error
            raise
        finally:
            self.breaker.ended(attempt)

    def _note_failure(self, attempt: Attempt, cause: ModelError) -> bool:
        """Return whether the model failed for everybody, and not only for this conversation."""
        was_open = self.breaker.is_open
        is_outage = isinstance(cause, ModelUnavailable) and cause.code != NO_CREDIT
        # The call of another conversation may well succeed.
        is_one_call = isinstance(cause, AnswerIncomplete) or type(cause) is ModelError
        if isinstance(cause, ModelRefused):
            is_one_call = cause.may_concern_messages
        if is_one_call:
            person = max(payer.get()[0], 0)  # groups count as one, because a person may have many
            self._doubts[None] = 0  # the server and the account work
            self._doubts[person] = min(self._doubts[person] + 1, _MAX_OF_PERSON)
        else:
            self._doubts[None] += _MAX_DOUBTS // 2 if is_outage else _MAX_DOUBTS
        if self._doubts.total() < _MAX_DOUBTS:
            self.breaker.answered()
            return False
        max_s = _MAX_OUTAGE_REST_S if is_outage else _MAX_REST_S
        rest_s = self.breaker.failed(attempt, in_silence=False, max_s=max_s)
        if not was_open:
            reason, advice = reason_of(cause, self.setting), _ADVICE[self.part]
            log.warning("model off", part=self.part, **reason, again_in_s=rest_s, advice=advice)
        # We do not know whether the model can write JSON at all, so the conversation waits too.
        return not isinstance(cause, AnswerUnreadable)


@dataclass(slots=True, eq=False)
class Resilient(Generic[_Model]):
    """Asks the first of two models, or the second; `limit_s` is the time for both together.

    If the first model was silent recently, a request waits half a second for it. Then the second
    one is asked too, and the first answer counts. Without a second model it only asks the first.
    """

    first: _Model
    second: _Model | None = None
    breaker: CircuitBreaker = field(default_factory=CircuitBreaker)
    limit_s: float = 0
    _probes: set[asyncio.Task[object]] = field(default_factory=set, init=False)

    async def ask(self, call: _Call[_Model, _Answer]) -> _Answer:
        """Return an answer of either model; raise the error of the last model asked."""
        if self.second is None:
            return await call(self.first)
        attempt = self.breaker.begin()
        if attempt is None:
            return await call(self.second)
        async with time_limit(self.limit_s):
            first = asyncio.create_task(self._ask_first(call, attempt))
            second: asyncio.Task[_Answer] | None = None
            try:
                await self._wait_for(first, attempt)
                if first.done() and not _is_away(first.exception()):
                    return first.result()
                second = asyncio.create_task(call(self.second))
                done, _ = await asyncio.wait({first, second}, return_when=asyncio.FIRST_COMPLETED)
                if first not in done and second.exception() is not None:
                    await asyncio.wait({first})
                if first.done() and first.exception() is None:
                    return first.result()
                return await second
            finally:
                is_answered = second is not None and second.done()
                if attempt.is_probe and is_answered and not first.done():
                    self._keep(first)
                else:
                    await end_tasks([first])
                if second is not None:
                    await end_tasks([second])

    async def close(self) -> None:
        """End the probes that still run."""
        await end_tasks(list(self._probes))

    async def _ask_first(self, call: _Call[_Model, _Answer], attempt: Attempt) -> _Answer:
        try:
            async with time_limit(_PROBE_S if attempt.is_probe else self.limit_s):
                answer = await call(self.first)
        except ModelError as error:
            if _is_away(error):
                rest_s = self.breaker.failed(attempt, in_silence=error.code == "timeout")
                log.warning("first model rests", reason=str(error), seconds=rest_s)
            else:
                self._note_answer()
            raise
        finally:
            self.breaker.ended(attempt)
        self._note_answer()
        return answer

    def _note_answer(self) -> None:
        if self.breaker.answered():
            log.info("first model answered again")

    async def _wait_for(self, first: "asyncio.Task[_Answer]", attempt: Attempt) -> None:
        """Wait until the first model is done, or until it will probably not be done soon."""
        if not attempt.is_probe:
            silence = asyncio.create_task(self.breaker.silence.wait())
            try:
                await asyncio.wait({first, silence}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                await end_tasks([silence])
        await asyncio.wait({first}, timeout=_HEAD_START_S)

    def _keep(self, probe: "asyncio.Task[_Answer]") -> None:
        """Let a probe continue after its turn was answered: the model may be slow, not gone."""

        def forget(task: "asyncio.Task[_Answer]") -> None:
            self._probes.discard(task)
            if not task.cancelled():
                task.exception()  # it was logged when it was raised

        self._probes.add(probe)
        probe.add_done_callback(forget)


def _is_away(error: BaseException | None) -> bool:
    """Tell whether the server, the account or the model is in trouble, not this request."""
    if isinstance(error, AnswerIncomplete):
        return error.code != CUT_SHORT
    if isinstance(error, ModelRefused):
        return error.code in _ACCOUNT_CODES or not error.may_concern_messages
    return isinstance(error, ModelUnavailable | NotAModel)
