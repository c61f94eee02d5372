"""Values of a run: what the model decided and what the tools answered.

Steps live in `completed_steps` of one run and never enter the history.
"""

from dataclasses import dataclass, field
from typing import Any

UNTRUSTED_STEP = "[foreign] "  # stands in a digest before a result that may hold text of others


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that the model asks for; `arguments` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolQuestion:
    """A call that its person has to agree to. The model knows its `name`; people see the rest."""

    name: str
    server: str
    tool: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the model gets for one call; times are Unix seconds."""

    call_id: str
    text: str
    failed: bool = False  # the text is an error
    is_untrusted: bool = True  # the text may hold text of others
    began_at: float = field(default=0.0, compare=False)  # 0 if the call could not run
    ended_at: float = field(default=0.0, compare=False)
    is_reader: bool = field(default=False, compare=False)  # that of its tool


@dataclass(frozen=True, slots=True)
class Action:
    """The model wants to run tools, perhaps several at once."""

    calls: tuple[ToolCall, ...]
    text: str = ""  # what it wrote beside them
    # Goes into the next request of the same run; not read and not stored here.
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
