"""Internal calls: a model asked for JSON of one shape, or for prose that no person sees.

Servers differ in what they accept, so a request begins with all that helps and gets plainer with
each refusal: a strict schema, then JSON mode with the schema in the prompt, then the prompt alone.
"""

import json
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic

import structlog

from bot.http_client import MAX_VALUES, read_json
from bot.model.call import ModelReply, ObservedCall, Post, PromptMessage, time_limit
from bot.model.model_errors import (
    CUT_SHORT,
    UNREADABLE,
    AnswerIncomplete,
    AnswerUnreadable,
    ContentRefused,
    ContextTooLong,
    ModelError,
    NotAModel,
)
from bot.model.openai_client import ModelClient
from bot.model.request_forms import Accepted, ServedModel, merged
from bot.model.resilience import ModelCondition, Resilient
from bot.model.wire import PROMPT, Dialect, Effort, Options, less_effort, object_of
from memory.text.internal_model import AnswerShape, InputRefused, InternalModelUnavailable

log = structlog.get_logger(__name__)

_STRICT, _JSON = "json_schema", "json_object"
_TEMPERATURE: Options = {"temperature": {"temperature": 0}}
_MAX_BYTES = 4 * 2**20
_IN_JSON = "Answer with one JSON object and nothing else. This is its JSON schema:\n"
_TRIES = 2
# Not strict: cheap models write line breaks inside strings unescaped.
_DECODER = json.JSONDecoder(strict=False)
_MAX_BRACES, _MAX_WALKS = 1_000, 4
"""How many objects we try to read, and how many times the length of the text for all of them."""


@dataclass(slots=True)
class StructuredModel:
    """One model of one server, for internal calls."""

    client: ModelClient
    model: str
    timeout_s: float
    reasoning: Effort | None = None
    _served: ServedModel = field(init=False)
    _always_shows_schema: bool = False
    _limits_tokens: bool = True

    def __post_init__(self) -> None:
        self._served = self.client.model(self.model)

    @property
    def mode(self) -> str:
        """How the next call asks for JSON: `json_schema`, `json_object` or `prompt`."""
        refused = self._served.accepted.refused
        return next(name for name in (_STRICT, _JSON, PROMPT) if name not in refused)

    async def fill(self, instructions: str, content: str, shape: AnswerShape) -> dict[str, object]:
        """Return each part of the shape as the model wrote it, None for one that is missing.

        The caller validates them with `AnswerShape.validate`. An answer of another shape is asked
        for again, once; the time limit covers both. Raise `ModelError`.
        """
        schema = json.dumps(shape.schema, ensure_ascii=False, separators=(",", ":"))
        without_schema = _messages(instructions, content)
        with_schema = _messages(f"{instructions}\n\n{_IN_JSON}{schema}", content)
        shows_schema, is_second_try = self._always_shows_schema, False

        def formats(dialect: Dialect) -> Options:
            plain = dialect.prompt(with_schema)
            strict = plain if shows_schema else dialect.prompt(without_schema)
            options = {
                _STRICT: {**strict, **dialect.json(shape)},
                _JSON: {**plain, **dialect.json(None)},
                PROMPT: plain,
            }
            if shape.unconvertible:
                del options[_STRICT]
            return options

        with ObservedCall("internal", self.model, self.client) as call:
            async with time_limit(self.timeout_s):
                while True:
                    mode, reply = await self._ask(call, formats, self.reasoning)
                    if reply.finish_reason == CUT_SHORT and not reply.text:
                        mode, reply = await self._ask(call, formats, less_effort(self.reasoning))
                    is_strict = mode == _STRICT and not shows_schema
                    try:
                        parts = _parts_of(reply, shape, is_strict=is_strict)
                    except AnswerUnreadable as error:
                        if is_second_try:
                            raise
                        log.warning("answer unreadable", reason=str(error))
                        shows_schema = is_second_try = True
                    else:
                        # The server took the schema and ignored it; the one in the prompt helped.
                        self._always_shows_schema |= is_second_try
                        return parts

    async def write(self, instructions: str, content: str, max_tokens: int) -> str:
        """Return prose, never blank; raise `ModelError`, also for prose cut at `max_tokens`."""
        prompt = _messages(instructions, content)
        effort = self.reasoning
        with ObservedCall("internal", self.model, self.client) as call:
            ask = partial(self._ask, call, lambda dialect: {PROMPT: dialect.prompt(prompt)})
            async with time_limit(self.timeout_s):
                for _ in range(_TRIES):
                    _, reply = await ask(effort, max_tokens if self._limits_tokens else None)
                    if reply.text:
                        return _whole(reply)
                    if reply.finish_reason == CUT_SHORT:  # the model spent all tokens on reasoning
                        self._limits_tokens, effort = False, less_effort(effort)
            raise AnswerUnreadable("no text")

    def _ask(
        self,
        call: ObservedCall,
        formats: Callable[[Dialect], Options],
        effort: Effort | None,
        max_tokens: int | None = None,
    ) -> Awaitable[tuple[str, ModelReply]]:
        """Return the format that the server took, and its answer."""

        def groups(accepted: Accepted) -> Sequence[Options]:
            dialect = accepted.dialect
            limit = [dialect.max_tokens(max_tokens)] if max_tokens else []
            reasoning = f"OPENAI_MEMORY_REASONING={effort}"
            efforts = [{reasoning: dialect.effort(effort)}] if effort else []
            return [formats(dialect), *limit, _TEMPERATURE, *efforts]

        async def send(dialect: Dialect, chosen: Options) -> tuple[str, ModelReply]:
            mode, began = next(iter(chosen)), monotonic()
            request = {"model": self.model, **dialect.fixed, **merged(chosen)}
            post = Post(dialect.path, request, self.timeout_s)
            body = await self.client.post_whole(post, _MAX_BYTES)
            answer = dialect.accumulator()
            try:
                answer.add_whole(object_of(read_json(body, MAX_VALUES)))
            except (*UNREADABLE, KeyError) as error:
                raise NotAModel(type(error).__name__) from error
            call.usage += answer.usage
            log.info(
                "internal call answered",
                mode=mode,
                prompt_tokens=answer.usage.prompt_tokens,
                cached_tokens=answer.usage.cached_tokens,
                completion_tokens=answer.usage.completion_tokens,
                seconds=round(monotonic() - began, 3),
            )
            reply = answer.reply()
            return mode, replace(reply, text=reply.text.strip())

        return self._served.ask(groups, send)


def _parts_of(reply: ModelReply, shape: AnswerShape, *, is_strict: bool) -> dict[str, object]:
    found = read_object(_whole(reply), shape.parts)
    if is_strict and not shape.is_met_by(found):
        raise AnswerUnreadable("the server ignored the schema")
    return {name: found.get(name) for name in shape.parts}


def read_object(text: str, names: Collection[str]) -> dict[str, object]:
    """Return the last JSON object in `text` that has any of `names`.

    The model may have put it into a code fence, or written explanations around it. Raise
    `AnswerUnreadable` if there is none.
    """
    found: object = None
    try:
        found = _DECODER.decode(text)
    except (ValueError, RecursionError):
        start, chars_left = text.find("{"), _MAX_WALKS * len(text)
        for _ in range(_MAX_BRACES):
            if start < 0 or chars_left < 0:
                break
            try:
                each, end = _DECODER.raw_decode(text, start)
                chars_left -= end - start
            except (ValueError, RecursionError) as error:
                end = start + 1
                # It names the beginning of a text without an end, but has read all of it.
                is_open = str(error).startswith("Unterminated")
                chars_left -= (len(text) if is_open else getattr(error, "pos", len(text))) - start
            else:
                if not each.keys().isdisjoint(names):
                    found = each
            start = text.find("{", end)
    if not isinstance(found, dict) or found.keys().isdisjoint(names):
        raise AnswerUnreadable("no such JSON object")
    return found


def _messages(instructions: str, content: str) -> Sequence[PromptMessage]:
    return (PromptMessage("system", instructions), PromptMessage("user", content))


def _whole(reply: ModelReply) -> str:
    if reply.finish_reason == CUT_SHORT:
        raise AnswerIncomplete("cut short", code=CUT_SHORT)
    return reply.text


@dataclass(frozen=True, slots=True, eq=False)
class InternalCalls:
    """Makes internal calls, as `memory` knows them, unless the models rest."""

    models: Resilient[StructuredModel]
    condition: ModelCondition

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
            with self.condition.attempt(InternalModelUnavailable):
                yield
        except (ContentRefused, ContextTooLong) as error:
            raise InputRefused(type(error).__name__) from error
        except ModelError as error:
            raise InternalModelUnavailable(type(error).__name__) from error
