"""What a turn tells its observers: one plain value for each step that is over.

An observer is a callable. It returns at once and changes nothing; it may hand the value to a task
of its own. Observers hear of the steps in their order.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bot.prompt.assemble import Prompt
from memory.behaviors.context import AgentContext
from memory.memory import Memory


@dataclass(frozen=True, slots=True)
class BotServing:
    """The bot answers from now on; `prompt` builds what the model is sent for a context."""

    memory: Memory
    prompt: Callable[[AgentContext], Prompt]


@dataclass(frozen=True, slots=True)
class AgentRan:
    """One run of the agent is over; `context` is as the run left it.

    `seconds` include loading the context. A run that failed has no `reply`, and `failure` names the
    error as the log does.
    """

    context: AgentContext
    reply: str
    failure: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Answered:
    """There is something to send: a reply or a notice."""

    seconds: float


@dataclass(frozen=True, slots=True)
class PartSent:
    """One part was sent, or refused: `outcome` is "sent" or the name of Telegram's error."""

    outcome: str


@dataclass(frozen=True, slots=True)
class GaveUp:
    """A turn that failed too often became a dead letter; `error` names its last error."""

    error: str


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The turn is over: `outcome` is "closed" or the name of the error that ended it."""

    outcome: str
    seconds: float


Event = BotServing | AgentRan | Answered | PartSent | GaveUp | TurnEnded
Observer = Callable[[Event], None]


def all_of(observers: Sequence[Observer]) -> Observer:
    """Return one observer that tells all of them, in their order."""

    def observe(event: Event) -> None:
        for each in observers:
            each(event)

    return observe
