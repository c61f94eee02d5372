"""Values of a run: what the agent decided and what its tools answered.

Steps live in one run's `completed_steps` and never enter the history.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

_CALL_CHARS = 200
_RESULT_CHARS = 300
_DIGEST_CHARS = 2_000

UNTRUSTED_STEP = "[foreign] "
"""Stands in a digest before what may hold others' words."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call the model asks for; `arguments` is the JSON text exactly as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What goes back to the model for one call; `failed` marks an error text.

    `is_foreign` says that others' words may be in it.
    """

    call_id: str
    text: str
    failed: bool = False
    is_untrusted: bool = True


@dataclass(frozen=True, slots=True)
class Action:
    """The model wants tools run, several at once if it asks so; `text` is said beside them.

    `reasoning` belongs to the model's next request of the same run; nobody here reads or stores it.
    """

    calls: tuple[ToolCall, ...]
    text: str = ""
    reasoning: tuple[Any, ...] = field(default=(), repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class FinishAction:
    """The model has answered; `text` is the reply, verbatim."""

    text: str


@dataclass(frozen=True, slots=True)
class CompletedStep:
    """An action with its results, in the order of its calls."""

    action: Action
    results: tuple[ToolResult, ...]


def digest(steps: Sequence[CompletedStep]) -> str:
    """Tell in a few lines what the tools of a run were asked and answered, for learning."""
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
