"""The model that answers people: streamed, with tools, over the API that its server takes.

Optional parameters are sent only if they are set, and no longer once a server has refused them.
"""

import asyncio
import json
import math
from collections.abc import Sequence
from contextlib import aclosing, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic

import httpx2
import orjson
import structlog

from bot.http_client import has_too_many_values
from bot.model.call import (
    CHARS_PER_TOKEN,
    ChatModel,
    ModelReply,
    ModelRequest,
    ObservedCall,
    Post,
    Usage,
    live_observer,
    time_limit,
)
from bot.model.model_errors import CUT_SHORT, UNREADABLE, AnswerIncomplete, ModelError, NotAModel
from bot.model.openai_client import ModelClient
from bot.model.request_forms import Accepted, ServedModel, merged
from bot.model.resilience import ModelCondition, Resilient
from bot.model.wire import (
    PROMPT,
    Accumulator,
    Dialect,
    Effort,
    EventReader,
    Options,
    Verbosity,
    less_effort,
)

log = structlog.get_logger(__name__)

NOT_SEEN = "[you cannot see the picture]"  # in place of a picture that a model cannot get
_PAUSE_S = 0.1  # before we ask a server again that has just broken off
_MAX_BYTES = 8 * 2**20
_BYTES_PER_TOKEN = 2_000  # on most servers each token comes in an event of its own, of 300 bytes
_READ_FACTOR = 4  # if a model ignores its token limit, we read up to so many times the limit
_REASONING_FACTOR = 4
"""Reasoning counts against the token limit, so a model that reasons gets a limit so much higher."""
_TOKENS_PER_S = 50  # about how fast models write
_REASONING = "OPENAI_REASONING="


@dataclass(frozen=True, slots=True)
class ChatParameters:
    """What the operator wants of a model's answers; None is not sent."""

    reply_tokens: int | None = None
    reasoning: Effort | None = None
    verbosity: Verbosity | None = None
    service_tier: str | None = None


@dataclass(slots=True, eq=False)
class OpenAIChatModel:
    """One model of one server."""

    client: ModelClient
    model: str
    timeout_s: float
    parameters: ChatParameters = ChatParameters()
    condition: ModelCondition | None = None
    _served: ServedModel = field(init=False)

    def __post_init__(self) -> None:
        self._served = self.client.model(self.model)

    @property
    def api(self) -> str:
        """The API that the next request uses: Responses or chat."""
        return self._served.accepted.dialect.name

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Return one complete answer; raise `ModelError`.

        If the answer breaks off, ask again once. If reasoning took the tokens of the answer, ask
        again once with less reasoning and more tokens. The time limit covers all of this.
        """
        noted = self.condition.noted() if self.condition else nullcontext()
        with noted, ObservedCall("answer", self.model, self.client) as call:
            first: ModelReply | None = None
            try:
                async with time_limit(self.timeout_s):
                    groups = partial(self._groups, request, self.parameters.reasoning, 1)
                    first = reply = await self._served.ask(groups, partial(self._stream, call))
                    call.usage += first.usage
                    reasoning = first.usage.reasoning_tokens
                    self._served.reasons |= reasoning > 0

                    # Is the answer missing or only begun, because reasoning took its tokens?
                    is_cut = first.finish_reason == CUT_SHORT
                    if first.text.strip():
                        is_lost = is_cut and 2 * reasoning > first.usage.completion_tokens
                    else:
                        is_lost = is_cut or reasoning > 0
                    if is_lost and not first.tool_calls:
                        reply = await self._reason_less(request, first, call)
            except ModelError:
                if first is None or not first.text.strip():
                    raise
                # The beginning of an answer is better than none.
                reply = first
            call.is_reply = not reply.tool_calls
            has_pictures = any(each.pictures for each in request.messages)
            is_blind = has_pictures and not self._served.accepted.sees
            return replace(reply, usage=call.usage, is_blind=is_blind)

    async def _reason_less(
        self, request: ModelRequest, first: ModelReply, call: ObservedCall
    ) -> ModelReply:
        """Ask once more, with less effort and more tokens."""
        log.warning("reasoning took the answer's tokens", model=self.model)
        effort = less_effort(self.parameters.reasoning)
        groups = partial(self._groups, request, effort, _REASONING_FACTOR)
        second = await self._served.ask(groups, partial(self._stream, call))
        call.usage += second.usage
        self._served.raise_token_limit(_REASONING_FACTOR)
        reply = second if second.text or second.tool_calls or not first.text else first
        if not (reply.text.strip() or reply.tool_calls):
            raise AnswerIncomplete("nothing but reasoning", code=CUT_SHORT)
        return reply

    def _groups(
        self, request: ModelRequest, effort: Effort | None, token_factor: int, accepted: Accepted
    ) -> Sequence[Options]:
        dialect, parameters, labels = accepted.dialect, self.parameters, request.labels
        messages = request.messages
        if not accepted.sees:
            messages = [
                replace(each, content=f"{each.content}\n\n{NOT_SEEN}".strip(), pictures=())
                if each.pictures
                else each
                for each in messages
            ]
        prompt = {"model": self.model, **dialect.prompt(messages), "stream": True}
        if request.tools:
            prompt["tools"] = [dialect.tool(each) for each in request.tools]
            if request.tool_choice != "auto":
                prompt["tool_choice"] = request.tool_choice
        groups: list[Options] = [{PROMPT: {**dialect.fixed, **prompt}}]
        for name, value in (
            ("prompt_cache_key", labels.conversation),
            ("safety_identifier", labels.person),
            ("service_tier", parameters.service_tier),
        ):
            groups += [{name: {name: value}}] if value else []
        if parameters.verbosity:
            groups.append({"verbosity": dialect.verbosity(parameters.verbosity)})
        groups.append(dialect.streaming(messages, self._served.origin))
        if request.tools and accepted.only_without_effort and dialect.name == "chat":
            effort = "none"
        if parameters.reply_tokens:
            factor = max(token_factor, accepted.token_factor)
            factor *= 1 if effort in (None, "none") else _REASONING_FACTOR
            groups.append(dialect.max_tokens(factor * parameters.reply_tokens))
        if effort:
            groups.append({f"{_REASONING}{effort}": dialect.effort(effort)})
        return groups

    async def _stream(self, call: ObservedCall, dialect: Dialect, chosen: Options) -> ModelReply:
        """Return the answer to one request; ask again once if it breaks off.

        Servers report the tokens at the end. If the end does not come, the tokens are estimated.
        Otherwise a person could stop each answer shortly before its end for free.
        """
        max_tokens = _READ_FACTOR * (self.parameters.reply_tokens or 0)
        is_quick = self.parameters.reasoning in (None, "none", "minimal", "low")
        silence_s = None if is_quick else self.timeout_s  # who reasons a lot is silent at first
        is_second_try = False
        while True:
            answer = dialect.accumulator(max_tokens * CHARS_PER_TOKEN or None, self._served.origin)
            events = EventReader(_MAX_BYTES + max_tokens * _BYTES_PER_TOKEN)
            began = monotonic()
            try:
                response = await self.client.post(Post(dialect.path, merged(chosen), silence_s))
                await read_answer(response, events, answer)
                call.answered()
                return answer.reply()
            except NotAModel:
                call.answered()
                raise
            except (asyncio.CancelledError, ModelError) as error:
                if call.unanswered:
                    efforts = {each for each in chosen if each.startswith(_REASONING)}
                    reasons = self._served.reasons or efforts - {f"{_REASONING}none"}
                    call.usage += _written(answer.reply(), monotonic() - began if reasons else 0)
                if is_second_try or not isinstance(error, AnswerIncomplete):
                    raise
                log.warning("answer broke off", reason=str(error))
            is_second_try = True
            await asyncio.sleep(_PAUSE_S)


def _written(reply: ModelReply, reasoned_s: float) -> Usage:
    """Return about what a server bills for the part of an answer that has come.

    A model that reasons writes all the time, `reasoned_s` seconds so far, and shows only some.
    """
    chars = len(reply.text) + sum(len(call.arguments) for call in reply.tool_calls)
    shown = chars // CHARS_PER_TOKEN
    hidden = max(0, math.ceil(reasoned_s * _TOKENS_PER_S) - shown)
    return Usage(0, shown + hidden, reasoning_tokens=hidden)


# A connection can be used again only if its answer is read to the end. We read so much for it.
_REST_S, _REST_BYTES = 0.1, 64 * 1024


async def read_answer(response: httpx2.Response, events: EventReader, answer: Accumulator) -> None:
    """Read a streamed answer and close it; trouble after its finish reason does not count.

    Raise `AnswerIncomplete` when it breaks off, `ContentRefused`, or `NotAModel`.
    """
    try:
        async with aclosing(response):
            await _read_events(response, events, answer)
    except (AnswerIncomplete, NotAModel):
        if not answer.finish_reason:
            raise
    except (*UNREADABLE, httpx2.HTTPError) as error:
        if not answer.finish_reason:
            raise AnswerIncomplete(type(error).__name__) from error
    if not answer.finish_reason:
        kind = response.headers.get("content-type", "").partition(";")[0]
        if answer.is_empty and kind != "text/event-stream":
            # A page, for example, behind a wrong base URL.
            raise NotAModel(f"{kind or 'nothing'} instead of a stream")
        raise AnswerIncomplete("no finish reason")


async def _read_events(response: httpx2.Response, events: EventReader, answer: Accumulator) -> None:
    observe = live_observer.get()
    async with aclosing(response.aiter_raw()) as body:
        async for piece in body:
            for event in events.feed(piece):
                if has_too_many_values(event):
                    raise NotAModel("an event has too many values")
                try:
                    answer.add(orjson.loads(event))
                except orjson.JSONDecodeError:  # it refuses half an emoji
                    answer.add(json.loads(event))
                if observe:
                    observe(answer.reply)
                if answer.is_over:
                    break
            if events.is_done or answer.is_over:
                break
        bytes_left = _REST_BYTES
        with suppress(TimeoutError):
            async with asyncio.timeout(_REST_S):
                while bytes_left > 0:
                    bytes_left -= len(await anext(body, b"")) or bytes_left


@dataclass(frozen=True, slots=True, eq=False)
class ResilientChatModel:
    """Answers people by two models, which have one condition."""

    models: Resilient[ChatModel]
    condition: ModelCondition

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Return one complete answer; raise `ModelError`."""
        with self.condition.noted():
            return await self.models.ask(lambda model: model.complete(request))
