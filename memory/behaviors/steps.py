"""Values of a run: what the model decided and what the tools answered.

Steps live in `completed_steps` of one run and never enter the history.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

_CALL_CHARS = 200
_RESULT_CHARS = 300
_DIGEST_CHARS = 2_000

UNTRUSTED_STEP = "[foreign] "
"""Stands in a digest before a result that may hold text of others."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that the model asks for; `arguments` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolQuestion:
    """A call that its person has to agree to: what the model calls it, and what people are shown.

    `arguments` is a JSON object.
    """

    name: str
    server: str
    tool: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the model gets for one call. `failed`: the text is an error.

    `is_untrusted`: the text may hold text of others. `is_reader` is that of its tool.
    `began_at` and `ended_at` are Unix seconds; a call of a tool that does not exist began
    at 0.
    """

    call_id: str
    text: str
    failed: bool = False
    is_untrusted: bool = True
    began_at: float = field(default=0.0, compare=False)
    ended_at: float = field(default=0.0, compare=False)
    is_reader: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Action:
    """The model wants to run tools, perhaps several at once; `text` is what it wrote beside them.

    `reasoning` goes into the next request of the same run. It is not read and not stored here.
    """

    calls: tuple[ToolCall, ...]
    text: str = ""
    reasoning: tuple[Any, ...] = field(default=(), repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class FinishAction:
    """The model has answered; `text` is the reply, unchanged."""

    text: str


@dataclass(frozen=True, slots=True)
class CompletedStep:
    """An action with its results, in the order of its calls."""

    action: Action
    results: tuple[ToolResult, ...]


def digest(steps: Sequence[CompletedStep]) -> str:
    """Return what the tools of a run were asked and answered, in at most 2,000 characters.

    Learning reads it; it is stored until then.
    """
    lines = [
        _line(call, result)
        for step in steps
        for call, result in zip(step.action.calls, step.results, strict=True)
    ]
    return "\n".join(lines)[:_DIGEST_CHARS]


def _line(call: ToolCall, result: ToolResult) -> str:
    mark = UNTRUSTED_STEP if result.is_untrusted else ""
    arguments, answer = call.arguments[:_CALL_CHARS], result.text[:_RESULT_CHARS]
    return f"{mark}{call.name}({arguments}) -> {answer}"
