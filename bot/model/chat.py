"""The model that answers people, streamed and with tools, over the API that its server takes.

Optional parameters are sent only when they are wanted, and no more once a server has refused them.
"""

import asyncio
import json
from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import Literal

import httpx2
import structlog

from bot.model.call import NO_LABELS, CallLabels, ModelReply, PromptMessage
from bot.model.dialects import (
    PROMPT,
    Accumulator,
    Dialect,
    Effort,
    Options,
    Verbosity,
    less,
    merged,
)
from bot.model.events import EventReader
from bot.model.model_errors import (
    CUT_SHORT,
    SDK_ERRORS,
    AnswerIncomplete,
    ModelError,
    ModelUnavailable,
    NotAModel,
)
from bot.model.openai_client import ModelClient
from bot.model.served import Taken
from memory.behaviors.tool import ToolDefinition

log = structlog.get_logger(__name__)

_PAUSE_S = 0.1
"""A server that has just broken off gets a moment before it is asked again."""
_REST_S = 0.1
_REST_BYTES = 64 * 1024
"""A connection can be used again when its answer is read to the end; so much is waited for it."""
_MAX_BYTES = 8 * 2**20
_BYTES_A_TOKEN = 2_000
"""A token comes in an event of its own, of 300 bytes on most servers."""
_READ_TOKENS = 4
"""A model that ignores its bound is read so many times beyond it."""
_CHARS_A_TOKEN = 4
_THINKING = 4
"""Thoughts count against the bound of an answer; a model told to think gets so much more room."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the operator wants of a model's answers; what is None is not sent."""

    reply_tokens: int | None = None
    reasoning: Effort | None = None
    verbosity: Verbosity | None = None
    service_tier: str | None = None


@dataclass(frozen=True, slots=True)
class _Asked:
    """One call; `effort` and `room` may differ from what is wanted at first."""

    messages: Sequence[PromptMessage]
    tools: Sequence[ToolDefinition]
    tool_choice: str
    labels: CallLabels
    effort: Effort | None
    room: int = 1


class OpenAIChatModel:
    """One model of one server."""

    def __init__(
        self,
        client: ModelClient,
        model: str,
        timeout_s: float,
        wishes: Wishes = Wishes(),
    ) -> None:
        self._client = client
        self._served = client.model(model)
        self._timeout_s = timeout_s
        self._wishes = wishes

    @property
    def api(self) -> str:
        """The API by which the model is asked by now: Responses or chat."""
        return self._served.taken.dialect.name

    async def complete(
        self,
        messages: Sequence[PromptMessage],
        tools: Sequence[ToolDefinition],
        *,
        tool_choice: Literal["auto", "none"] = "auto",
        labels: CallLabels = NO_LABELS,
    ) -> ModelReply:
        """Return one complete answer; one that breaks off is asked for again, once.

        So is one whose room went to the model's thoughts, with less of them and more room. The time
        limit covers all of it. Raise `ModelError`.
        """
        asked = _Asked(messages, tools, tool_choice, labels, self._wishes.reasoning)
        first: ModelReply | None = None
        try:
            async with asyncio.timeout(self._timeout_s):
                first = await self._insist(asked)
                return await self._think_less(asked, first) if _is_lost(first) else first
        except TimeoutError as error:
            late = ModelUnavailable("no answer in time", code="timeout")
            if first is None:
                raise late from error
            return _beginning(first, late)

    async def _think_less(self, asked: _Asked, first: ModelReply) -> ModelReply:
        log.warning("thoughts took the answer's room", model=self._served.name)
        effort = less(asked.effort)
        try:
            second = await self._insist(replace(asked, effort=effort, room=_THINKING))
        except ModelError as error:
            return _beginning(first, error)
        self._served.make_room()
        reply = second if second.text or second.tool_calls or not first.text else first
        reply = replace(reply, usage=first.usage + second.usage)
        if not (reply.text.strip() or reply.tool_calls):
            nothing = AnswerIncomplete("nothing but thoughts", code=CUT_SHORT)
            nothing.usage = reply.usage
            raise nothing
        return reply

    async def _insist(self, asked: _Asked) -> ModelReply:
        try:
            return await self._ask(asked)
        except AnswerIncomplete as error:
            log.warning("answer broke off", reason=str(error))
            await asyncio.sleep(_PAUSE_S)
            return await self._ask(asked)

    async def _ask(self, asked: _Asked) -> ModelReply:
        return await self._served.ask(lambda taken: self._groups(asked, taken), self._stream)

    def _groups(self, asked: _Asked, taken: Taken) -> Sequence[Options]:
        """Return the parts of a request, what is missed least first."""
        dialect, wishes, labels = taken.dialect, self._wishes, asked.labels
        prompt = {"model": self._served.name, **dialect.prompt(asked.messages), "stream": True}
        if asked.tools:
            prompt |= dialect.tools(asked.tools, asked.tool_choice)
        groups: list[Options] = [{PROMPT: {**dialect.fixed, **prompt}}]
        for name, value in (
            ("prompt_cache_key", labels.conversation),
            ("safety_identifier", labels.person),
            ("service_tier", wishes.service_tier),
        ):
            groups += [{name: {name: value}}] if value else []
        if wishes.verbosity:
            groups.append({"verbosity": dialect.verbosity(wishes.verbosity)})
        groups.append(dialect.streaming(asked.messages, self._served.origin))
        effort = asked.effort
        if asked.tools and taken.only_without_effort and dialect.name == "chat":
            effort = "none"
        if wishes.reply_tokens:
            room = max(asked.room, taken.room) * (1 if effort in (None, "none") else _THINKING)
            groups.append(dialect.max_tokens(room * wishes.reply_tokens))
        if effort:
            groups.append({f"OPENAI_REASONING={effort}": dialect.effort(effort)})
        return groups

    async def _stream(self, dialect: Dialect, chosen: Options) -> ModelReply:
        """Return the answer to one request; raise `AnswerIncomplete` when it broke off."""
        bound = self._wishes.reply_tokens
        read = None if bound is None else _READ_TOKENS * bound
        answer = dialect.accumulator(read and read * _CHARS_A_TOKEN, self._served.origin)
        events = EventReader(_MAX_BYTES + (read or 0) * _BYTES_A_TOKEN)
        response = await self._client.post(dialect.path, merged(chosen), self._silence_s())
        try:
            async with aclosing(response):
                await _read(response, events, answer)
        except (AnswerIncomplete, NotAModel):
            if not answer.is_complete:
                raise
        except (*SDK_ERRORS, httpx2.HTTPError) as error:
            if not answer.is_complete:
                raise AnswerIncomplete(type(error).__name__) from error
        if not answer.is_complete:
            raise _why_unfinished(answer, response)
        return answer.reply()

    def _silence_s(self) -> float | None:
        """Return how long nothing may come: a model that shall think a lot says nothing first."""
        thinks = self._wishes.reasoning not in (None, "none", "minimal", "low")
        return self._timeout_s if thinks else None


def _beginning(reply: ModelReply, error: ModelError) -> ModelReply:
    """Return an answer that thoughts have cut, if there is any of it; else raise the error."""
    usage = reply.usage + error.usage
    if reply.text.strip():
        return replace(reply, usage=usage)
    error.usage = usage
    raise error


def _is_lost(reply: ModelReply) -> bool:
    """Whether there is no answer, or only its beginning, because of the model's thoughts."""
    if reply.tool_calls:
        return False
    thought, written = reply.usage.reasoning_tokens, reply.usage.completion_tokens
    if reply.finish_reason == "length":
        return not reply.text.strip() or 2 * thought > written
    return not reply.text.strip() and thought > 0


async def _read(response: httpx2.Response, events: EventReader, answer: Accumulator) -> None:
    """Read a streamed answer to its end, or as far as it is wanted."""
    async with aclosing(response.aiter_bytes()) as body:
        async for piece in body:
            for event in events.feed(piece):
                # The standard library's reader: faster ones refuse half an emoji.
                answer.add(json.loads(event))
                if answer.is_over:
                    break
            if events.is_done or answer.is_over:
                break
        left = _REST_BYTES
        with suppress(TimeoutError):
            async with asyncio.timeout(_REST_S):
                while left > 0:
                    left -= len(await anext(body, b"")) or left


def _why_unfinished(answer: Accumulator, response: httpx2.Response) -> AnswerIncomplete | NotAModel:
    """Tell a stream that broke off from what was no stream: a page behind a wrong base URL, say."""
    kind = response.headers.get("content-type", "").partition(";")[0]
    if answer.is_empty and kind != "text/event-stream":
        return NotAModel(f"{kind or 'nothing'} instead of a stream")
    return AnswerIncomplete("no finish reason")
