"""What the two APIs of model servers have in common: the parts of a request and of an answer.

`CHAT` is in `completions`, `RESPONSES` in `responses`. A request has optional parts, each with a
name and some with a second best form. So `request_forms` can leave out what a server refuses.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from bot.model.call import ModelReply, PromptMessage, Usage
from bot.model.model_errors import AnswerIncomplete
from bot.model.wire import MAX_CALL_CHARS, count_of, object_of
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


def less_effort(effort: Effort | None) -> Effort:
    """Return less effort, for an answer whose tokens all went into reasoning."""
    return _LESS.get(effort, "none")


def usage_of(given: object, prompt: str, completion: str) -> Usage:
    """Read what was billed; `prompt` and `completion` are how the API's field names begin."""
    usage = object_of(given)
    return Usage(
        count_of(usage.get(f"{prompt}_tokens")),
        count_of(usage.get(f"{completion}_tokens")),
        count_of(object_of(usage.get(f"{prompt}_tokens_details")).get("cached_tokens")),
        count_of(object_of(usage.get(f"{completion}_tokens_details")).get("reasoning_tokens")),
    )


@dataclass(frozen=True, slots=True)
class WrittenAnswer:
    """The answer to an internal call."""

    text: str
    is_cut: bool  # it ended at its token limit
    usage: Usage
    mode: str = ""  # the option by which it was asked for


@dataclass(slots=True, repr=False, eq=False)
class Accumulator:
    """Joins the events of one streamed answer; each API has its own subclass.

    An answer counts as complete, and nothing more is read, when its text exceeds `max_chars` or
    when it has more than `MAX_CALLS` tool calls. `origin` names the server and the model that can
    read the reasoning items.
    """

    max_chars: int | None = None
    origin: str = ""
    finish_reason: str = ""  # as soon as the server said that the answer is finished
    usage: Usage = field(default_factory=Usage)
    is_empty: bool = True  # no event has come yet
    is_over: bool = False  # nothing more has to be read
    _pieces: list[str] = field(default_factory=list)
    _chars: int = 0
    _call_chars: int = 0

    def add(self, event: object) -> None:
        """Take one event as parsed JSON.

        Raise `AnswerIncomplete` for one that cannot be read or that reports an error, and
        `ContentRefused` for one that says that a filter declined the text.
        """
        raise NotImplementedError

    def reply(self) -> ModelReply:
        """Return the answer so far; it is whole only if it has a `finish_reason`."""
        raise NotImplementedError

    def _add_text(self, piece: str) -> None:
        if self.max_chars is not None and self._chars + len(piece) > self.max_chars:
            piece = piece[: self.max_chars - self._chars]
            self._end("length")
        self._chars += len(piece)
        self._pieces.append(piece)

    def _end(self, finish_reason: str) -> None:
        self.is_over, self.finish_reason = True, finish_reason

    def _count_call(self, *pieces: str) -> None:
        self._call_chars += sum(map(len, pieces))
        if self._call_chars > MAX_CALL_CHARS:
            raise AnswerIncomplete("the tool calls are too long")


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """One API: the path of its requests, how their parts are written, how answers are read."""

    name: Literal["chat", "Responses"]
    path: str
    fixed: Mapping[str, Any]  # of every request
    limits: tuple[str, ...]  # names of the token limit of an answer, reasoning included; best first
    prompt: Callable[[Sequence[PromptMessage]], Mapping[str, Any]]  # without reasoning items
    streaming: Callable[[Sequence[PromptMessage], str], Options]
    """The options of a streamed request, with the reasoning items that come from this origin."""
    tool: Callable[[ToolDefinition], Mapping[str, Any]]
    effort: Callable[[Effort], Mapping[str, Any]]
    verbosity: Callable[[Verbosity], Mapping[str, Any]]
    json: Callable[[AnswerShape | None], Mapping[str, Any]]
    """The fields that ask for JSON of a strict shape, or for any JSON object (None)."""
    accumulator: type[Accumulator]
    read: Callable[[Mapping[str, object]], WrittenAnswer]
    """Reads an answer that was not streamed; raises `ContentRefused` or `AnswerIncomplete`."""

    def max_tokens(self, count: int) -> Options:
        """Return the token limit of an answer."""
        return {name: {name: count} for name in self.limits}
