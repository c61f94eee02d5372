"""Keeps internal calls and embeddings from a model that fails for everybody.

    ModelCondition   since when one model fails, and why
    Guard            decides whether a model is asked
    InternalCalls    internal calls as `memory` knows them
    GuardedEmbedder  embeddings

Such a model rests, from a minute up to a day, and one answer ends the rest. A failure for which one
call may be the reason does not count, unless it happens many times in a row.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal, TypeAlias, TypeVar

import structlog

from bot.model.call_report import CallReport
from bot.model.circuit_breaker import Attempt, CircuitBreaker
from bot.model.fallback import ModelPair
from bot.model.model_errors import (
    NO_CREDIT,
    AnswerIncomplete,
    AnswerUnreadable,
    ContentRefused,
    ContextTooLong,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    model_error,
    reason_of,
)
from bot.model.structured import StructuredModel
from memory.search.embeddings import Embedder, EmbeddingsUnavailable, Vectors
from memory.text.internal_model import InputRefused, InternalModelUnavailable
from memory.text.shape import AnswerShape

log = structlog.get_logger(__name__)

Part: TypeAlias = Literal["answers", "learning", "vectors"]
"""What a model is for."""

FIRST_REST_S = 60.0
MAX_REST_S = 86_400.0
_MAX_OUTAGE_REST_S = 900.0
"""For trouble that ends without the operator: a server that is down or overloaded."""
_FOR_ALL_AFTER_S = 60
_CERTAIN_FAILURES = 2

_MAX_DOUBTS = 20
"""A failure that may concern one call adds one doubt: learning needs up to 13 in a row to find the
text that a filter refuses. An outage adds half of the maximum, because it may pass at once."""

_ADVICE: Mapping[Part, str] = {
    "learning": "messages are still answered, but nothing is learned from them for now",
    "vectors": "recall uses words alone; set OPENAI_EMBEDDING_MODEL=off if this server has none",
}

_Answer = TypeVar("_Answer")
_Unavailable = type[InternalModelUnavailable] | type[EmbeddingsUnavailable]


class ModelCondition:
    """How one model works, as far as this process knows.

    `setting` names the model in the environment. Times are Unix seconds, 0 for never. `breaker`
    decides when the model is asked, if any does.
    """

    def __init__(self, part: Part, setting: str, clock: Callable[[], float] = time.time) -> None:
        self.part: Part = part
        self.setting = setting
        self.answered_at = 0.0
        self.failing_since = 0.0
        self.error = ModelError()
        self.breaker: CircuitBreaker | None = None
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

    @property
    def fails_for_all(self) -> bool:
        """Whether no call was answered for a minute, and one message cannot be the reason."""
        if not self.failing_since or self._clock() - self.failing_since < _FOR_ALL_AFTER_S:
            return False
        error = self.error
        is_one_message = isinstance(error, ModelRefused) and error.may_concern_messages
        return self._failures >= _CERTAIN_FAILURES or not is_one_message


class Guard:
    """Keeps calls from a model that fails for everybody."""

    def __init__(self, condition: ModelCondition, breaker: CircuitBreaker | None = None) -> None:
        self._condition = condition
        self._breaker = breaker or CircuitBreaker(first_s=FIRST_REST_S, max_s=MAX_REST_S)
        condition.breaker = self._breaker
        self._doubts = 0

    async def ask(
        self, call: Callable[[], Awaitable[_Answer]], unavailable: _Unavailable
    ) -> _Answer:
        """Return the answer; raise `unavailable`, at once while the model rests."""
        attempt = self._breaker.begin()
        if attempt is None:
            raise unavailable("resting", rests_s=self._breaker.rests_s)
        try:
            answer = await call()
        except (InternalModelUnavailable, EmbeddingsUnavailable) as error:
            if self._note_failure(attempt, error):
                raise unavailable(str(error), rests_s=self._breaker.rests_s) from error
            raise
        finally:
            self._breaker.abandoned(attempt)
        self._note_answer(attempt)
        return answer

    def _note_failure(self, attempt: Attempt, error: Exception) -> bool:
        """Return whether the model failed for everybody, and not only for this conversation."""
        cause = model_error(error) or ModelError()
        self._condition.failed(cause)
        was_open = self._breaker.is_open
        is_outage = isinstance(cause, ModelUnavailable) and cause.code != NO_CREDIT
        is_one_call = _may_concern_one_call(cause)
        self._doubts += 1 if is_one_call else _MAX_DOUBTS // 2 if is_outage else _MAX_DOUBTS
        if self._doubts < _MAX_DOUBTS:
            self._breaker.answered(attempt)
            return False
        max_s = _MAX_OUTAGE_REST_S if is_outage else MAX_REST_S
        rest_s = self._breaker.failed(attempt, in_silence=False, max_s=max_s)
        if not was_open:
            part, setting = self._condition.part, self._condition.setting
            reason = reason_of(cause, setting)
            log.warning("model off", part=part, **reason, again_in_s=rest_s, advice=_ADVICE[part])
        # We do not know whether the model can write JSON at all, so the conversation waits too.
        return not isinstance(cause, AnswerUnreadable)

    def _note_answer(self, attempt: Attempt) -> None:
        self._condition.answered()
        self._doubts = 0
        if self._breaker.answered(attempt):
            log.info("model on again", part=self._condition.part)


class InternalCalls:
    """Makes internal calls by a pair of models, unless they rest."""

    def __init__(self, models: ModelPair[StructuredModel], guard: Guard) -> None:
        self._models = models
        self._guard = guard

    async def fill(
        self, instructions: str, content: str, shape: AnswerShape
    ) -> Mapping[str, object]:
        """Return the raw parts of a structured answer; raise `InternalModelUnavailable`."""
        return await self._ask(lambda model: model.fill(instructions, content, shape))

    async def write(self, instructions: str, content: str, max_tokens: int) -> str:
        """Return prose; raise `InternalModelUnavailable`."""
        return await self._ask(lambda model: model.write(instructions, content, max_tokens))

    async def _ask(self, call: Callable[[StructuredModel], Awaitable[_Answer]]) -> _Answer:
        async def ask() -> _Answer:
            try:
                return await self._models.ask(call)
            except (ContentRefused, ContextTooLong) as error:
                raise InputRefused(type(error).__name__) from error
            except ModelError as error:
                raise InternalModelUnavailable(type(error).__name__) from error

        return await self._guard.ask(ask, InternalModelUnavailable)


class GuardedEmbedder:
    """Makes embeddings, unless the model rests."""

    def __init__(self, embedder: Embedder, guard: Guard) -> None:
        self._embedder = embedder
        self._guard = guard

    @property
    def fingerprint(self) -> str:
        """The model and the dimensions."""
        return self._embedder.fingerprint

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return `(len(texts), dimensions)` float32, unit rows; raise `EmbeddingsUnavailable`."""
        return await self._guard.ask(lambda: self._embedder.embed(texts), EmbeddingsUnavailable)


def _may_concern_one_call(cause: ModelError) -> bool:
    """Tell whether the call of another conversation may well succeed."""
    if isinstance(cause, ModelRefused):
        return cause.may_concern_messages
    return isinstance(cause, AnswerIncomplete) or type(cause) is ModelError
