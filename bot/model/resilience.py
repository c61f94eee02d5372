"""Resilience: which model is asked, and when a model that fails is asked again.

    Resilient          asks one model, or the second one while the first one fails
    Guard              lets internal calls and embeddings rest while their model fails for everybody

If the first model was silent recently, a request waits half a second for it. Then the second one
is asked too, and the first answer counts.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import structlog

from bot.model.call import (
    NO_LABELS,
    CallLabels,
    ChatModel,
    ModelObserver,
    ModelReply,
    ObservedCall,
    PromptMessage,
)
from bot.model.circuit_breaker import Attempt, CircuitBreaker, ModelCondition, Part
from bot.model.model_errors import (
    CUT_SHORT,
    NO_CREDIT,
    NO_CREDIT_CODES,
    AnswerIncomplete,
    AnswerUnreadable,
    ContentRefused,
    ContextTooLong,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    NotAModel,
    reason_of,
    time_limit,
)
from bot.model.structured import StructuredModel
from memory.behaviors.tool import ToolDefinition
from memory.store.tasks import end_tasks
from memory.text.internal_model import InputRefused, InternalModelUnavailable
from memory.text.shape import AnswerShape

log = structlog.get_logger(__name__)

FIRST_REST_S, MAX_REST_S = 60.0, 86_400.0
_MAX_OUTAGE_REST_S = 900.0
"""For trouble that ends without the operator: a server that is down or overloaded."""

_MAX_DOUBTS = 20
"""A failure that one call may have caused adds one doubt: learning needs up to 13 in a row to find
the text that a filter refuses. An outage adds half of the maximum, because it may pass at once."""

_ADVICE: Mapping[Part, str] = {
    "learning": "messages are still answered, but nothing is learned from them for now",
    "vectors": "recall uses words alone; set OPENAI_EMBEDDING_MODEL=off if this server has none",
}

_HEAD_START_S = 0.5
"""How long we wait for a first model that may be silent before we ask the second one too."""
_PROBE_S = 40.0
"""A probe that takes longer counts as a failure, so that the next one can begin."""
_ACCOUNT_CODES = frozenset({*NO_CREDIT_CODES, "model_not_found"})
"""Codes that concern the account or the model, whatever the status is."""

_Model = TypeVar("_Model")
_Answer = TypeVar("_Answer")
_Call: TypeAlias = Callable[[_Model], Coroutine[Any, Any, _Answer]]


class Resting(Exception):
    """Raised if a model fails for everybody and is not asked for `rests_s` seconds."""

    def __init__(self, reason: str, rests_s: float) -> None:
        super().__init__(reason)
        self.rests_s = rests_s


class Guard:
    """Keeps calls from a model that fails for everybody; it rests from a minute up to a day.

    A failure that one call may have caused counts only after many in a row. One answer ends the
    rest.
    """

    def __init__(self, condition: ModelCondition, breaker: CircuitBreaker | None = None) -> None:
        self._condition = condition
        self._breaker = breaker or CircuitBreaker(first_s=FIRST_REST_S, max_s=MAX_REST_S)
        condition.breaker = self._breaker
        self._doubts = 0

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Guard one call in the block; raise `Resting`, at once while the model rests."""
        attempt = self._breaker.begin()
        if attempt is None:
            raise Resting("resting", self._breaker.rests_s)
        try:
            yield
        except ModelError as error:
            if self._note_failure(attempt, error):
                raise Resting(type(error).__name__, self._breaker.rests_s) from error
            raise
        else:
            self._condition.answered()
            self._doubts = 0
            if self._breaker.answered(attempt):
                log.info("model on again", part=self._condition.part)
        finally:
            self._breaker.abandoned(attempt)

    def _note_failure(self, attempt: Attempt, cause: ModelError) -> bool:
        """Return whether the model failed for everybody, and not only for this conversation."""
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


@dataclass(slots=True, eq=False)
class Resilient(Generic[_Model]):
    """Asks the first of two models, or the second; `limit_s` is the time for both together.

    Without a second model it only asks the first.
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
                return await _earlier(first, second)
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
        for probe in list(self._probes):
            await end_tasks([probe])

    async def _ask_first(self, call: _Call[_Model, _Answer], attempt: Attempt) -> _Answer:
        try:
            async with time_limit(_PROBE_S if attempt.is_probe else self.limit_s):
                answer = await call(self.first)
        except ModelError as error:
            if _is_away(error):
                rest_s = self.breaker.failed(attempt, in_silence=error.code == "timeout")
                log.warning("first model rests", reason=str(error), seconds=rest_s)
            else:
                self._note_answer(attempt)
            raise
        finally:
            self.breaker.abandoned(attempt)
        self._note_answer(attempt)
        return answer

    def _note_answer(self, attempt: Attempt) -> None:
        if self.breaker.answered(attempt):
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


@dataclass(frozen=True, slots=True, eq=False)
class ResilientChatModel:
    """Answers people by two models; `observers` see both as one model without a name."""

    models: Resilient[ChatModel]
    observers: Sequence[ModelObserver] = ()

    async def complete(
        self,
        messages: Sequence[PromptMessage],
        tools: Sequence[ToolDefinition],
        *,
        tool_choice: Literal["auto", "none"] = "auto",
        labels: CallLabels = NO_LABELS,
    ) -> ModelReply:
        """Return one complete answer; raise `ModelError`."""
        with ObservedCall("answer", "", "first", self.observers):
            return await self.models.ask(
                lambda model: model.complete(
                    messages, tools, tool_choice=tool_choice, labels=labels
                )
            )


@dataclass(frozen=True, slots=True, eq=False)
class InternalCalls:
    """Makes internal calls, as `memory` knows them, unless the models rest."""

    models: Resilient[StructuredModel]
    guard: Guard

    async def fill(
        self, instructions: str, content: str, shape: AnswerShape
    ) -> Mapping[str, object]:
        """Return the raw parts of a structured answer; raise `InternalModelUnavailable`."""
        with self._attempt():
            return await self.models.ask(lambda model: model.fill(instructions, content, shape))

    async def write(self, instructions: str, content: str, max_tokens: int) -> str:
        """Return prose; raise `InternalModelUnavailable`."""
        with self._attempt():
            return await self.models.ask(
                lambda model: model.write(instructions, content, max_tokens)
            )

    @contextmanager
    def _attempt(self) -> Iterator[None]:
        """Turn errors of models into those of internal calls."""
        try:
            with self.guard.attempt():
                yield
        except (ContentRefused, ContextTooLong) as error:
            raise InputRefused(type(error).__name__) from error
        except Resting as error:
            raise InternalModelUnavailable(str(error), rests_s=error.rests_s) from error
        except ModelError as error:
            raise InternalModelUnavailable(type(error).__name__) from error


def _may_concern_one_call(cause: ModelError) -> bool:
    """Tell whether the call of another conversation may well succeed."""
    if isinstance(cause, ModelRefused):
        return cause.may_concern_messages
    return isinstance(cause, AnswerIncomplete) or type(cause) is ModelError


def _is_away(error: BaseException | None) -> bool:
    """Tell whether the server, the account or the model is in trouble, not this request."""
    if isinstance(error, AnswerIncomplete):
        return error.code != CUT_SHORT
    if isinstance(error, ModelRefused):
        return error.code in _ACCOUNT_CODES or not error.may_concern_messages
    return isinstance(error, ModelUnavailable | NotAModel)


async def _earlier(first: "asyncio.Task[_Answer]", second: "asyncio.Task[_Answer]") -> _Answer:
    """Return the answer that comes first; if both fail, raise the second model's error."""
    done, _ = await asyncio.wait({first, second}, return_when=asyncio.FIRST_COMPLETED)
    if first in done and first.exception() is None:
        return first.result()
    if second in done and second.exception() is not None and first not in done:
        await asyncio.wait({first})
        if first.exception() is None:
            return first.result()
    return await second
