"""What the two APIs of model servers have in common: how a request is put together.

A request begins with all that helps. What a server turns down is left out from then on, so each
optional part has a name, and some have a second best.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from bot.model.call import ModelReply, PromptMessage, Usage
from bot.model.model_errors import ContextTooLong, ModelRefused
from memory.behaviors.tool import ToolDefinition
from memory.text.shape import Shape

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Verbosity = Literal["low", "medium", "high"]

Options = Mapping[str, Mapping[str, Any]]
"""Alternatives by name, the best first, each with what it puts into a request."""

PROMPT = "prompt"
"""The name of an option that every server takes: it is never left out."""
_PROMPT_FIELDS = frozenset({"messages", "input"})


@dataclass(frozen=True, slots=True)
class WrittenAnswer:
    """The answer to an internal call; `is_cut` says that it ended at a bound."""

    text: str
    is_cut: bool
    usage: Usage


class Accumulator(Protocol):
    """Joins the events of one streamed answer."""

    is_empty: bool
    is_over: bool

    @property
    def is_complete(self) -> bool:
        """Whether the server said that the answer is finished."""
        ...

    def add(self, event: object) -> None:
        """Take one event; raise `AnswerIncomplete` or `ContentRefused`."""
        ...

    def reply(self) -> ModelReply:
        """Return the answer so far."""
        ...


class Dialect(Protocol):
    """One API: where requests go, how their parts are written, how answers are read."""

    name: Literal["chat", "Responses"]
    path: str
    fixed: Mapping[str, Any]
    """What every request says."""

    def prompt(self, messages: Sequence[PromptMessage]) -> Mapping[str, Any]:
        """Return the prompt."""
        ...

    def streaming(self, messages: Sequence[PromptMessage], origin: str) -> Options:
        """Return what a streamed answer should bring along, and the thoughts of earlier steps."""
        ...

    def tools(self, tools: Sequence[ToolDefinition], choice: str) -> Mapping[str, Any]:
        """Return the tools that a model may call."""
        ...

    def max_tokens(self, count: int) -> Options:
        """Return the bound of an answer, thoughts included."""
        ...

    def effort(self, effort: Effort) -> Mapping[str, Any]:
        """Return how much a model shall think."""
        ...

    def verbosity(self, verbosity: Verbosity) -> Mapping[str, Any]:
        """Return how much a model shall say."""
        ...

    def json(self, shape: Shape | None) -> Mapping[str, Any]:
        """Return that the answer is JSON of a strict shape, or any (None)."""
        ...

    def accumulator(self, max_chars: int | None, origin: str) -> Accumulator:
        """Return what joins a streamed answer."""
        ...

    def read(self, body: Mapping[str, object]) -> WrittenAnswer:
        """Return an answer that was not streamed; raise `ContentRefused`, `AnswerIncomplete`."""
        ...


_LESS: dict[Effort | None, Effort] = {
    None: "low",
    "max": "medium",
    "xhigh": "medium",
    "high": "low",
    "medium": "low",
}


def less(effort: Effort | None) -> Effort:
    """Return less effort, for an answer whose room went to thoughts."""
    return _LESS.get(effort, "none")


def chosen_of(groups: Sequence[Options], refused: frozenset[str]) -> Options:
    """Return the first option of each group that is not refused."""
    left = ([name for name in group if name not in refused] for group in groups)
    return {names[0]: group[names[0]] for names, group in zip(left, groups, strict=True) if names}


def merged(options: Options) -> dict[str, Any]:
    """Return what options put into a request together."""
    return {key: value for option in options.values() for key, value in option.items()}


def blamed_for(error: ModelRefused, chosen: Options) -> frozenset[str]:
    """Return the options that a refusal names; else the first, if it may be about any of them."""
    optional = [name for name in chosen if name != PROMPT]
    named = [
        name
        for name in optional
        if any(map(error.objects_to, {name, *chosen[name]} - _PROMPT_FIELDS))
    ]
    if named:
        return frozenset(named)
    is_vague = error.may_concern_parameters and not isinstance(error, ContextTooLong)
    return frozenset(optional[:1] if is_vague else ())
