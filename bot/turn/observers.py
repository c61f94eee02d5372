"""What the bot tells its observers: one plain value for each step that begins or is over.

A call to a model that is over is such a step, too: its `CallReport` comes from `bot.model`.

An observer is a callable. It returns at once and changes nothing; it may hand the value to a task
of its own. Observers hear of the steps in their order.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from bot.model.call import CallReport
from bot.prompt.assemble import Prompt
from memory.behaviors.context import AgentContext
from memory.memory import Memory
from memory.queue.open_turn import OpenTurn
from memory.store.keys import Scope


@dataclass(frozen=True, slots=True)
class BotServing:
    """The bot answers from now on; `prompt` builds what the model is sent for a context."""

    memory: Memory
    prompt: Callable[[AgentContext], Prompt]


Step = Literal["answer", "recall", "model", "outbox", "delivery", "commit", "after"]


@dataclass(frozen=True, slots=True)
class StepBegan:
    """A step of a turn begins; "answer" is the first one, "model" includes the calls of tools.

    The log's fields of this task name the turn and its conversation.
    """

    step: Step


@dataclass(frozen=True, slots=True)
class NotAnswered:
    """An error became an apology; both the person and the log have the `reference`."""

    reference: str
    error: str


@dataclass(frozen=True, slots=True)
class UpdateArrived:
    """An update of Telegram arrived; what this task does until `UpdateHandled` is its intake."""


@dataclass(frozen=True, slots=True)
class UpdateHandled:
    """Telegram is told about an update: `outcome` is "accepted" or "refused"."""

    outcome: str


@dataclass(frozen=True, slots=True)
class TurnBegan:
    """A turn begins, perhaps not for the first time; it ends in the same task."""

    opened: OpenTurn


@dataclass(frozen=True, slots=True)
class AgentRan:
    """One run of the agent is over."""

    context: AgentContext  # as the run left it
    reply: str  # "" if it failed
    error: BaseException | None  # that ended it
    seconds: float
    load_seconds: float = 0.0  # of these, for loading the context


@dataclass(frozen=True, slots=True)
class Answered:
    """The steps that answer are over, also if an error ended them."""

    seconds: float


@dataclass(frozen=True, slots=True)
class PartSent:
    """One part was sent or not: `outcome` is "sent", "given_up" or the name of Telegram's error."""

    outcome: str
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class GaveUp:
    """A turn that failed too often became a dead letter; `error` names its last error."""

    error: str


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The turn is over: `outcome` is "closed" or the name of the error that ended it."""

    outcome: str
    seconds: float


@dataclass(frozen=True, slots=True)
class LearningBegan:
    """The bot begins to learn from a conversation; it ends in the same task."""

    conversation: Scope


@dataclass(frozen=True, slots=True)
class LearningEnded:
    """The bot has learned what was due: `outcome` is "learned" or the name of an error."""

    outcome: str


@dataclass(frozen=True, slots=True)
class FieldsRefused:
    """An update of the operator's fields was refused; `source` is "learning" or "tool"."""

    source: str


Event = (
    BotServing
    | UpdateArrived
    | UpdateHandled
    | TurnBegan
    | StepBegan
    | NotAnswered
    | AgentRan
    | Answered
    | PartSent
    | GaveUp
    | TurnEnded
    | LearningBegan
    | LearningEnded
    | FieldsRefused
    | CallReport
)
Observer = Callable[[Event], None]


@contextmanager
def observed(
    observe: Observer, began: Event, ended: Callable[[str], Event], outcome: str
) -> Iterator[None]:
    """Tell of `began`, and after the block of `ended`: with `outcome`, or an error's name."""
    observe(began)
    try:
        yield
    except BaseException as error:
        outcome = type(error).__name__
        raise
    finally:
        observe(ended(outcome))


def all_of(observers: Sequence[Observer]) -> Observer:
    """Return one observer that tells all of them in their order, also those added later."""

    def observe(event: Event) -> None:
        for each in observers:
            each(event)

    return observe
