"""The second model: it answers while the first one cannot.

    ModelPair          decides which of two models is asked
    FallbackChatModel  answers people by a pair

A model that fails rests (`circuit_breaker`). If the first model was silent recently, a request
waits half a second for it; then the second model is asked too, and the first answer counts.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, Literal, TypeVar

import structlog

from bot.model.call import (
    NO_LABELS,
    CallLabels,
    ChatModel,
    ModelReply,
    PromptMessage,
)
from bot.model.call_report import ModelObserver, ObservedCall
from bot.model.circuit_breaker import Attempt, CircuitBreaker
from bot.model.model_errors import (
    CUT_SHORT,
    NO_CREDIT,
    AnswerIncomplete,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    NotAModel,
    time_limit,
)
from memory.behaviors.tool import ToolDefinition

log = structlog.get_logger(__name__)

_HEAD_START_S = 0.5
"""How long we wait for a first model that may be silent before we ask the second one too."""
_PROBE_S = 40.0
"""A probe that takes longer counts as a failure, so that the next one can begin."""
_ACCOUNT_CODES = frozenset(
    {"billing_hard_limit_reached", "billing_not_active", NO_CREDIT, "model_not_found"}
)
"""Codes that concern the account or the model, whatever the status is."""

_Model = TypeVar("_Model")
_Answer = TypeVar("_Answer")


class ModelPair(Generic[_Model]):
    """Asks the first of two models, or the second; `limit_s` is the time for both together.

    Without a second model it only asks the first.
    """

    def __init__(
        self,
        first: _Model,
        second: _Model | None = None,
        breaker: CircuitBreaker | None = None,
        limit_s: float = 0,
    ) -> None:
        self._first = first
        self._second = second
        self._breaker = breaker or CircuitBreaker()
        self._limit_s = limit_s
        self._probes: set[asyncio.Task[object]] = set()

    async def ask(self, call: Callable[[_Model], Awaitable[_Answer]]) -> _Answer:
        """Return an answer of either model; raise the `ModelError` of the last one asked."""
        if self._second is None:
            return await call(self._first)
        attempt = self._breaker.begin()
        if attempt is None:
            return await call(self._second)
        async with time_limit(self._limit_s):
            first = asyncio.create_task(self._ask_first(call, attempt))
            second: asyncio.Task[_Answer] | None = None
            try:
                await self._wait_for(first, attempt)
                if first.done() and not _is_away(first.exception()):
                    return first.result()
                second = asyncio.create_task(_asked(call, self._second))
                return await _earlier(first, second)
            finally:
                is_answered = second is not None and second.done()
                if attempt.is_probe and is_answered and not first.done():
                    self._keep(first)
                else:
                    await _end(first)
                if second is not None:
                    await _end(second)

    async def close(self) -> None:
        """End the probes that still run."""
        for probe in list(self._probes):
            await _end(probe)

    async def _ask_first(
        self, call: Callable[[_Model], Awaitable[_Answer]], attempt: Attempt
    ) -> _Answer:
        """Ask the first model, and note whether it works."""
        try:
            async with time_limit(_PROBE_S if attempt.is_probe else self._limit_s):
                answer = await call(self._first)
        except ModelError as error:
            if _is_away(error):
                rest_s = self._breaker.failed(attempt, in_silence=error.code == "timeout")
                log.warning("first model rests", reason=str(error), seconds=rest_s)
            else:
                self._note_answer(attempt)
            raise
        finally:
            self._breaker.abandoned(attempt)
        self._note_answer(attempt)
        return answer

    def _note_answer(self, attempt: Attempt) -> None:
        if self._breaker.answered(attempt):
            log.info("first model answered again")

    async def _wait_for(self, first: "asyncio.Task[_Answer]", attempt: Attempt) -> None:
        """Wait until the first model is done, or until it will probably not be done soon."""
        if not attempt.is_probe:
            silence = asyncio.create_task(self._breaker.silence.wait())
            try:
                await asyncio.wait({first, silence}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                await _end(silence)
        await asyncio.wait({first}, timeout=_HEAD_START_S)

    def _keep(self, probe: "asyncio.Task[_Answer]") -> None:
        """Let a probe continue after its turn was answered: the model may be slow, not gone."""

        def forget(task: "asyncio.Task[_Answer]") -> None:
            self._probes.discard(task)
            if not task.cancelled():
                task.exception()  # it was logged when it was raised

        self._probes.add(probe)
        probe.add_done_callback(forget)


class FallbackChatModel:
    """Answers people by a pair of models; `observers` see the pair as one model without a name."""

    def __init__(self, pair: ModelPair[ChatModel], observers: Sequence[ModelObserver] = ()) -> None:
        self._pair = pair
        self._observers = observers

    async def complete(
        self,
        messages: Sequence[PromptMessage],
        tools: Sequence[ToolDefinition],
        *,
        tool_choice: Literal["auto", "none"] = "auto",
        labels: CallLabels = NO_LABELS,
    ) -> ModelReply:
        """Return one complete answer; raise `ModelError`."""
        with ObservedCall("answer", "", "first", self._observers):
            return await self._pair.ask(
                lambda model: model.complete(
                    messages, tools, tool_choice=tool_choice, labels=labels
                )
            )


def _is_away(error: BaseException | None) -> bool:
    """Tell whether the server, the account or the model is in trouble, not this request."""
    if isinstance(error, AnswerIncomplete):
        return error.code != CUT_SHORT
    if isinstance(error, ModelRefused):
        return error.code in _ACCOUNT_CODES or not error.may_concern_messages
    return isinstance(error, ModelUnavailable | NotAModel)


async def _asked(call: Callable[[_Model], Awaitable[_Answer]], model: _Model) -> _Answer:
    return await call(model)


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


async def _end(task: "asyncio.Task[_Answer]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
