"""What the two APIs of model servers have in common: the parts of a request and of an answer.

A request has optional parts. Each has a name, and some have a second best form, so that `served`
can leave out what a server refuses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from bot.model.call import ModelReply, PromptMessage, Usage
from bot.model.model_errors import AnswerIncomplete
from bot.model.wire import MAX_CALL_CHARS, BoundedText, count_of, object_of
from memory.behaviors.tool import ToolDefinition
from memory.text.shape import AnswerShape

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Verbosity = Literal["low", "medium", "high"]

Options: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Alternatives by name, the best first, each with the fields that it adds to a request."""

PROMPT = "prompt"
"""The name of the option that every server takes: it is never left out."""

_LESS: Mapping[Effort | None, Effort] = {
    None: "low",
    "max": "medium",
    "xhigh": "medium",
    "high": "low",
    "medium": "low",
}


def less(effort: Effort | None) -> Effort:
    """Return less effort, for an answer whose tokens all went into reasoning."""
    return _LESS.get(effort, "none")


def usage_of(given: object, prompt: str, completion: str) -> Usage:
    """Read what the server billed, as far as it says; the APIs name the two directions."""
    usage = object_of(given)
    return Usage(
        count_of(usage.get(f"{prompt}_tokens")),
        count_of(usage.get(f"{completion}_tokens")),
        count_of(object_of(usage.get(f"{prompt}_tokens_details")).get("cached_tokens")),
        count_of(object_of(usage.get(f"{completion}_tokens_details")).get("reasoning_tokens")),
    )


@dataclass(frozen=True, slots=True)
class WrittenAnswer:
    """The answer to an internal call; `is_cut` says that it ended at its token limit.

    `mode` names the option by which it was asked for.
    """

    text: str
    is_cut: bool
    usage: Usage
    mode: str = ""


class Accumulator:
    """Joins the events of one streamed answer; each API has its own subclass.

    An answer counts as complete, and nothing more is read, when its text exceeds `max_chars` or
    when it has more than `MAX_CALLS` tool calls.
    """

    def __init__(self, max_chars: int | None = None) -> None:
        self._text = BoundedText(max_chars)
        self._call_chars_left = MAX_CALL_CHARS
        self._finish_reason = ""
        self._usage = Usage()
        self.is_empty = True
        """Whether no event has come yet."""
        self.is_over = False
        """Whether nothing more has to be read."""

    @property
    def is_complete(self) -> bool:
        """Whether the server said that the answer is finished."""
        return bool(self._finish_reason)

    def add(self, event: object) -> None:
        """Take one event as parsed JSON.

        Raise `AnswerIncomplete` for one that cannot be read or that reports an error, and
        `ContentRefused` for one that says that a filter declined the text.
        """
        raise NotImplementedError

    def reply(self) -> ModelReply:
        """Return the answer so far; it is whole only if `is_complete`."""
        raise NotImplementedError

    def _end(self, finish_reason: str) -> None:
        self.is_over = True
        self._finish_reason = finish_reason

    def _count_call(self, *pieces: str) -> None:
        self._call_chars_left -= sum(map(len, pieces))
        if self._call_chars_left < 0:
            raise AnswerIncomplete("the tool calls are too long")


class Dialect(Protocol):
    """One API: the path of its requests, how their parts are written, how answers are read."""

    name: Literal["chat", "Responses"]
    path: str
    fixed: Mapping[str, Any]
    """Fields of every request."""

    def prompt(self, messages: Sequence[PromptMessage]) -> Mapping[str, Any]:
        """Return the field of the prompt, without reasoning items."""
        ...

    def streaming(self, messages: Sequence[PromptMessage], origin: str) -> Options:
        """Return what to ask of a stream, with the reasoning items that `origin` can read."""
        ...

    def tools(self, tools: Sequence[ToolDefinition], choice: str) -> Mapping[str, Any]:
        """Return the tools that a model may call."""
        ...

    def max_tokens(self, count: int) -> Options:
        """Return the token limit of an answer, reasoning included."""
        ...

    def effort(self, effort: Effort) -> Mapping[str, Any]:
        """Return how much the model should reason."""
        ...

    def verbosity(self, verbosity: Verbosity) -> Mapping[str, Any]:
        """Return how much the model should say."""
        ...

    def json(self, shape: AnswerShape | None) -> Mapping[str, Any]:
        """Return that the answer must be JSON of a strict shape, or any JSON object (None)."""
        ...

    def accumulator(self, max_chars: int | None, origin: str) -> Accumulator:
        """Return an empty accumulator for a streamed answer."""
        ...

    def read(self, body: Mapping[str, object]) -> WrittenAnswer:
        """Return an answer that was not streamed; raise `ContentRefused`, `AnswerIncomplete`."""
        ...
