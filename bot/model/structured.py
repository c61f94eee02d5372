"""Internal calls: a model asked for JSON of one shape, or for prose that no person sees as it is.

Servers differ in what they take, so a request begins with all that helps and gets plainer with each
refusal: a strict schema, then JSON mode with the schema in the prompt, then the prompt alone. What
a server has turned down is not sent to it again. Nothing here streams or offers tools.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any

import structlog
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletion

from bot.model.client import patience
from bot.model.errors import (
    CONTENT_FILTER,
    CUT_SHORT,
    FOREIGN,
    AnswerIncomplete,
    AnswerUnreadable,
    ContentRefused,
    ContextTooLong,
    ModelRefused,
    ModelUnavailable,
    translate,
)
from bot.model.json_answer import read_object
from bot.model.stream import usage_of
from bot.model.values import Usage
from bot.utf16 import well_formed
from memory.shape import Shape

log = structlog.get_logger(__name__)

Options = Mapping[str, Mapping[str, Any]]
"""Alternatives by name, the best first, each with what it puts into a request."""

_STRICT, _JSON, _PROMPT = "json_schema", "json_object", "prompt"
_STEADY: Options = {"temperature": {"temperature": 0}}
_BOUNDS = ("max_completion_tokens", "max_tokens")
"""The new name first: api.openai.com takes it for every model, the old one not for all."""
_IN_JSON = "Answer with one JSON object and nothing else. This is its JSON schema:\n"
_TRIES = 2


@dataclass(frozen=True, slots=True)
class _Answer:
    """`mode` says how it was asked for, `is_cut` that it ended at a bound."""

    text: str
    is_cut: bool
    mode: str


class StructuredModel:
    """One model of one server, for internal calls."""

    def __init__(
        self,
        client: AsyncOpenAI,
        model: str,
        timeout_s: float,
        on_usage: Callable[[Usage], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._on_usage = on_usage
        self._model = model
        self._timeout_s = timeout_s
        self._refused: frozenset[str] = frozenset()
        self._always_tells = False

    @property
    def mode(self) -> str:
        """How JSON is asked for by now: `json_schema`, `json_object`, or by the `prompt` alone."""
        return next(name for name in (_STRICT, _JSON, _PROMPT) if name not in self._refused)

    async def fill(self, instructions: str, material: str, shape: Shape) -> dict[str, object]:
        """Return each part of the shape as the model wrote it, None for one that it left out.

        Validating them is `Shape.validate`'s business. An answer of another shape is asked for
        again, once; the time limit covers both. Raise `ModelError`.
        """
        async with self._in_time():
            try:
                return await self._fill(instructions, material, shape, tells=self._always_tells)
            except AnswerUnreadable as error:
                log.warning("answer of no use", reason=str(error))
            parts = await self._fill(instructions, material, shape, tells=True)
            # A server may take a schema and not mind it; a schema in words has helped.
            self._always_tells = True
            return parts

    async def write(self, instructions: str, material: str, max_tokens: int) -> str:
        """Return prose, never blank; raise `ModelError`, also for prose cut at `max_tokens`."""
        prompt = {_PROMPT: {"messages": _messages(instructions, material)}}
        bounds = {name: {name: max_tokens} for name in _BOUNDS}
        async with self._in_time():
            for _ in range(_TRIES):
                answer = await self._ask(prompt, bounds, _STEADY)
                if answer.text:
                    return _whole(answer)
                if answer.is_cut:  # a reasoning model has spent it all on its thoughts
                    self._remember(frozenset(_BOUNDS))
        raise AnswerUnreadable("no text")

    async def _fill(
        self, instructions: str, material: str, shape: Shape, *, tells: bool
    ) -> dict[str, object]:
        """Return the parts of one answer; `tells` has the schema in the prompt in any case."""
        schema = json.dumps(shape.schema, ensure_ascii=False, separators=(",", ":"))
        untold = _messages(instructions, material)
        told = _messages(f"{instructions}\n\n{_IN_JSON}{schema}", material)
        formats: Options = {
            _STRICT: {
                "messages": told if tells else untold,
                "response_format": _strict_format(shape),
            },
            _JSON: {"messages": told, "response_format": {"type": _JSON}},
            _PROMPT: {"messages": told},
        }
        if not shape.is_strict:
            formats = {name: formats[name] for name in (_JSON, _PROMPT)}
        answer = await self._ask(formats, _STEADY)
        found = read_object(_whole(answer), shape.parts)
        if answer.mode == _STRICT and not tells and not shape.is_met_by(found):
            raise AnswerUnreadable("the schema was not minded")
        return shape.raw_parts(found)

    async def _ask(self, *groups: Options) -> _Answer:
        """Return one answer, asked with the first option of each group that is not refused."""
        refused = self._refused
        while True:
            chosen = _chosen(groups, refused)
            try:
                answer = await self._call(chosen)
            except (ContentRefused, ContextTooLong):
                raise
            except ModelRefused as error:
                blamed = _blamed(chosen, error)
                if not blamed:
                    raise
                refused |= blamed
            else:
                self._remember(refused)
                return answer

    def _remember(self, refused: frozenset[str]) -> None:
        for name in sorted(refused - self._refused):
            log.info("parameter dropped", parameter=name)
        self._refused |= refused

    async def _call(self, chosen: Options) -> _Answer:
        """Make one request; the first of `chosen` is what the log calls its mode."""
        mode = next(iter(chosen))
        request = {key: value for option in chosen.values() for key, value in option.items()}
        began = monotonic()
        try:
            completion = await self._client.chat.completions.create(
                model=self._model, timeout=patience(self._timeout_s), **request
            )
            usage = usage_of(completion.usage) if completion.usage else Usage()
            _log_usage(usage, mode, monotonic() - began)
            self._on_usage(usage)
            return _read(completion, mode)
        except FOREIGN as error:
            raise translate(error) from error

    @asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._timeout_s):
                yield
        except TimeoutError as error:
            raise ModelUnavailable("no answer in time", code="timeout") from error


def _messages(instructions: str, material: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": instructions}, {"role": "user", "content": material}]


def _strict_format(shape: Shape) -> dict[str, object]:
    named = {"name": "answer", "strict": True, "schema": shape.schema}
    return {"type": _STRICT, _STRICT: named}


def _chosen(groups: Sequence[Options], refused: frozenset[str]) -> Options:
    left = ([name for name in group if name not in refused] for group in groups)
    return {names[0]: group[names[0]] for names, group in zip(left, groups, strict=True) if names}


def _blamed(chosen: Options, error: ModelRefused) -> frozenset[str]:
    """Return the options that a refusal names; else the first, if it may be about any of them."""
    optional = [name for name in chosen if name != _PROMPT]
    named = [
        name
        for name in optional
        if any(map(error.objects_to, {name, *chosen[name]} - {"messages"}))
    ]
    if named:
        return frozenset(named)
    return frozenset(optional[:1] if error.may_concern_parameters else ())


def _log_usage(usage: Usage, mode: str, seconds: float) -> None:
    log.info(
        "internal call",
        mode=mode,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        completion_tokens=usage.completion_tokens,
        seconds=round(seconds, 3),
    )


def _read(completion: ChatCompletion, mode: str) -> _Answer:
    choice = completion.choices[0]
    if choice.message.refusal or choice.finish_reason == CONTENT_FILTER:
        raise ContentRefused("the model declined")
    said = choice.message.content
    text = well_formed(said).strip() if isinstance(said, str) else ""
    return _Answer(text, choice.finish_reason == "length", mode)


def _whole(answer: _Answer) -> str:
    if answer.is_cut:
        raise AnswerIncomplete("cut short", code=CUT_SHORT)
    return answer.text
