"""The second model: it answers while the first one cannot.

    FallbackChatModel      answers to people
    FallbackInternalModel  internal calls
    ModelPair              decides which of two models is asked; both use one

A model that fails rests (`resting`). Nobody waits for a model that is known to be silent: after
half a second the second one is asked too, and the first answer counts.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Generic, Literal, TypeVar

import structlog

from bot.model.call import NO_LABELS, CallLabels, ChatModel, ModelReply, PromptMessage
from bot.model.model_errors import (
    CUT_SHORT,
    AnswerIncomplete,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    NotAModel,
)
from bot.model.resting import Attempt, Rest
from memory.behaviors.tool import ToolDefinition
from memory.text.internal_model import InternalModel, InternalModelUnavailable
from memory.text.shape import Shape

log = structlog.get_logger(__name__)

_HEAD_START_S = 0.5
"""How long a model that may be silent is waited for before the second one is asked too."""
_PROBE_S = 40.0
"""A probe that takes longer counts as a failure, so that the next one can begin."""
_GONE = frozenset(
    {"billing_hard_limit_reached", "billing_not_active", "insufficient_quota", "model_not_found"}
)
"""Codes that concern account and model, whatever the status is."""
_FAILURES = (ModelError, InternalModelUnavailable)

_Model = TypeVar("_Model")
_Answer = TypeVar("_Answer")


class ModelPair(Generic[_Model]):
    """Asks the first of two models, or the second; `limit_s` is the time for both together."""

    def __init__(self, first: _Model, second: _Model, rest: Rest, limit_s: float) -> None:
        self._first = first
        self._second = second
        self._rest = rest
        self._limit_s = limit_s
        self._probes: set[asyncio.Task[object]] = set()

    async def ask(self, call: Callable[[_Model], Awaitable[_Answer]]) -> _Answer:
        """Return an answer of either model; raise what the last one raised."""
        attempt = self._rest.begin()
        if attempt is None:
            return await call(self._second)
        async with _in_time(self._limit_s):
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
        """Ask the first model, and note how it is."""
        try:
            async with _in_time(_PROBE_S if attempt.is_probe else self._limit_s):
                answer = await call(self._first)
        except _FAILURES as error:
            if _is_away(error):
                cause = _cause(error)
                rest_s = self._rest.failed(attempt, in_silence=cause.code == "timeout")
                log.warning("first model rests", reason=str(cause), seconds=rest_s)
            else:
                self._note_answer(attempt)
            raise
        finally:
            self._rest.abandoned(attempt)
        self._note_answer(attempt)
        return answer

    def _note_answer(self, attempt: Attempt) -> None:
        if self._rest.answered(attempt):
            log.info("first model answers again")

    async def _wait_for(self, first: "asyncio.Task[_Answer]", attempt: Attempt) -> None:
        """Wait until the first model is done, or until there is little hope that it will be."""
        if not attempt.is_probe:
            silence = asyncio.create_task(self._rest.silence.wait())
            try:
                await asyncio.wait({first, silence}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                await _end(silence)
        await asyncio.wait({first}, timeout=_HEAD_START_S)

    def _keep(self, probe: "asyncio.Task[_Answer]") -> None:
        """Let a probe go on though its turn has an answer: a slow model may be well again."""

        def forget(task: "asyncio.Task[_Answer]") -> None:
            self._probes.discard(task)
            if not task.cancelled():
                task.exception()  # it was logged where it was raised

        self._probes.add(probe)
        probe.add_done_callback(forget)


class FallbackChatModel:
    """Answers people by the first of two models, or by the second."""

    def __init__(self, pair: ModelPair[ChatModel]) -> None:
        self._pair = pair

    async def complete(
        self,
        messages: Sequence[PromptMessage],
        tools: Sequence[ToolDefinition],
        *,
        tool_choice: Literal["auto", "none"] = "auto",
        labels: CallLabels = NO_LABELS,
    ) -> ModelReply:
        """Return one complete answer; raise `ModelError`."""
        return await self._pair.ask(
            lambda model: model.complete(messages, tools, tool_choice=tool_choice, labels=labels)
        )


class FallbackInternalModel:
    """Answers internal calls by the first of two models, or by the second."""

    def __init__(self, pair: ModelPair[InternalModel]) -> None:
        self._pair = pair

    async def fill(self, instructions: str, content: str, shape: Shape) -> Mapping[str, object]:
        """Return the raw parts of a structured answer; raise `InternalModelUnavailable`."""
        return await self._ask(lambda model: model.fill(instructions, content, shape))

    async def write(self, instructions: str, content: str, max_tokens: int) -> str:
        """Return prose; raise `InternalModelUnavailable`."""
        return await self._ask(lambda model: model.write(instructions, content, max_tokens))

    async def _ask(self, call: Callable[[InternalModel], Awaitable[_Answer]]) -> _Answer:
        try:
            return await self._pair.ask(call)
        except ModelError as error:  # the time for both is over
            raise InternalModelUnavailable(type(error).__name__) from error


def _is_away(error: BaseException | None) -> bool:
    """Tell whether the server, the account or the model is in trouble, not this request."""
    cause = _cause(error)
    if isinstance(cause, AnswerIncomplete):
        return cause.code != CUT_SHORT
    if isinstance(cause, ModelRefused):
        return cause.code in _GONE or not cause.may_concern_messages
    return isinstance(cause, ModelUnavailable | NotAModel)


def _cause(error: BaseException | None) -> ModelError:
    """Return the model's error, also where an internal call hides it behind its own."""
    if isinstance(error, InternalModelUnavailable):
        error = error.__cause__
    return error if isinstance(error, ModelError) else ModelError()


async def _asked(call: Callable[[_Model], Awaitable[_Answer]], model: _Model) -> _Answer:
    return await call(model)


async def _earlier(first: "asyncio.Task[_Answer]", second: "asyncio.Task[_Answer]") -> _Answer:
    """Return the answer that comes first; raise the second model's error when there is none."""
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


@asynccontextmanager
async def _in_time(limit_s: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(limit_s):
            yield
    except TimeoutError as error:
        raise ModelUnavailable("no answer in time", code="timeout") from error
