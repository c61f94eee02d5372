"""Internal calls: a model asked for JSON of one shape, or for prose that no person sees as it is.

Servers differ in what they take, so a request begins with all that helps and gets plainer with each
refusal: a strict schema, then JSON mode with the schema in the prompt, then the prompt alone. What
a server has turned down is not sent to it again. Nothing here streams or offers tools.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from time import monotonic

import structlog

from bot.model.call import PromptMessage, Usage
from bot.model.dialects import PROMPT, Dialect, Effort, Options, less, merged
from bot.model.json_answer import read_object
from bot.model.model_errors import (
    CUT_SHORT,
    SDK_ERRORS,
    AnswerIncomplete,
    AnswerUnreadable,
    ModelUnavailable,
    NotAModel,
)
from bot.model.openai_client import ModelClient
from bot.model.served import Taken
from bot.model.wire import object_of
from memory.text.shape import Shape

log = structlog.get_logger(__name__)

_STRICT, _JSON = "json_schema", "json_object"
_STEADY: Options = {"temperature": {"temperature": 0}}
_MAX_BYTES = 4 * 2**20
_IN_JSON = "Answer with one JSON object and nothing else. This is its JSON schema:\n"
_TRIES = 2


@dataclass(frozen=True, slots=True)
class _Answer:
    """`mode` says how it was asked for, `is_cut` that it ended at a bound."""

    text: str
    is_cut: bool
    mode: str


@dataclass(frozen=True, slots=True)
class _Form:
    """How one call is asked: its formats by dialect, its bound, and how much the model thinks."""

    formats: Callable[[Dialect], Options]
    effort: Effort | None
    max_tokens: int | None = None


class StructuredModel:
    """One model of one server, for internal calls; `reasoning` is how much it shall think."""

    def __init__(
        self,
        client: ModelClient,
        model: str,
        timeout_s: float,
        on_usage: Callable[[Usage], None] = lambda _: None,
        reasoning: Effort | None = None,
    ) -> None:
        self._client = client
        self._on_usage = on_usage
        self._served = client.model(model)
        self._timeout_s = timeout_s
        self._reasoning = reasoning
        self._always_tells = False
        self._is_bounded = True

    @property
    def mode(self) -> str:
        """How JSON is asked for by now: `json_schema`, `json_object`, or by the `prompt` alone."""
        refused = self._served.taken.refused
        return next(name for name in (_STRICT, _JSON, PROMPT) if name not in refused)

    async def fill(self, instructions: str, content: str, shape: Shape) -> dict[str, object]:
        """Return each part of the shape as the model wrote it, None for one that it left out.

        Validating them is `Shape.validate`'s business. An answer of another shape is asked for
        again, once; the time limit covers both. Raise `ModelError`.
        """
        async with self._in_time():
            try:
                return await self._fill(instructions, content, shape, tells=self._always_tells)
            except AnswerUnreadable as error:
                log.warning("answer of no use", reason=str(error))
            parts = await self._fill(instructions, content, shape, tells=True)
            # A server may take a schema and not mind it; a schema in words has helped.
            self._always_tells = True
            return parts

    async def write(self, instructions: str, content: str, max_tokens: int) -> str:
        """Return prose, never blank; raise `ModelError`, also for prose cut at `max_tokens`."""
        prompt = _messages(instructions, content)
        bound = max_tokens if self._is_bounded else None
        form = _Form(lambda dialect: {PROMPT: dialect.prompt(prompt)}, self._reasoning, bound)
        async with self._in_time():
            for _ in range(_TRIES):
                answer = await self._ask(form)
                if answer.text:
                    return _whole(answer)
                if answer.is_cut:  # a reasoning model has spent it all on its thoughts
                    self._is_bounded = False
                    form = replace(form, effort=less(form.effort), max_tokens=None)
        raise AnswerUnreadable("no text")

    async def _fill(
        self, instructions: str, content: str, shape: Shape, *, tells: bool
    ) -> dict[str, object]:
        """Return the parts of one answer; `tells` has the schema in the prompt in any case."""
        schema = json.dumps(shape.schema, ensure_ascii=False, separators=(",", ":"))
        untold = _messages(instructions, content)
        told = _messages(f"{instructions}\n\n{_IN_JSON}{schema}", content)

        def formats(dialect: Dialect) -> Options:
            plain = dialect.prompt(told)
            strict = plain if tells else dialect.prompt(untold)
            options = {
                _STRICT: {**strict, **dialect.json(shape)},
                _JSON: {**plain, **dialect.json(None)},
                PROMPT: plain,
            }
            return options if shape.is_strict else {name: options[name] for name in (_JSON, PROMPT)}

        form = _Form(formats, self._reasoning)
        answer = await self._ask(form)
        if answer.is_cut and not answer.text:
            answer = await self._ask(replace(form, effort=less(form.effort)))
        found = read_object(_whole(answer), shape.parts)
        if answer.mode == _STRICT and not tells and not shape.is_met_by(found):
            raise AnswerUnreadable("the schema was not minded")
        return shape.raw_parts(found)

    async def _ask(self, form: _Form) -> _Answer:
        """Return one answer, asked in the first form that the server does not refuse."""

        def groups(taken: Taken) -> Sequence[Options]:
            dialect = taken.dialect
            parts = [form.formats(dialect)]
            if form.max_tokens:
                parts.append(dialect.max_tokens(form.max_tokens))
            parts.append(_STEADY)
            if form.effort:
                parts.append(
                    {f"OPENAI_MEMORY_REASONING={form.effort}": dialect.effort(form.effort)}
                )
            return parts

        return await self._served.ask(groups, self._call)

    async def _call(self, dialect: Dialect, chosen: Options) -> _Answer:
        """Make one request; the first of `chosen` is what the log calls its mode."""
        mode = next(iter(chosen))
        request = {"model": self._served.name, **dialect.fixed, **merged(chosen)}
        began = monotonic()
        body = await self._client.post_whole(dialect.path, request, _MAX_BYTES, self._timeout_s)
        try:
            written = dialect.read(object_of(json.loads(body)))
        except (*SDK_ERRORS, KeyError) as error:
            raise NotAModel(type(error).__name__) from error
        _log_usage(written.usage, mode, monotonic() - began)
        self._on_usage(written.usage)
        return _Answer(written.text, written.is_cut, mode)

    @asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._timeout_s):
                yield
        except TimeoutError as error:
            raise ModelUnavailable("no answer in time", code="timeout") from error


def _messages(instructions: str, content: str) -> Sequence[PromptMessage]:
    return (PromptMessage("system", instructions), PromptMessage("user", content))


def _log_usage(usage: Usage, mode: str, seconds: float) -> None:
    log.info(
        "internal call",
        mode=mode,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        completion_tokens=usage.completion_tokens,
        seconds=round(seconds, 3),
    )


def _whole(answer: _Answer) -> str:
    if answer.is_cut:
        raise AnswerIncomplete("cut short", code=CUT_SHORT)
    return answer.text
