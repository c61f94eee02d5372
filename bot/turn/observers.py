"""What the bot tells its observers: one plain value for each step that begins or is over.

A call to a model that is over is such a step, too: its `CallReport` comes from `bot.model`.

An observer is a callable. It returns at once and changes nothing; it may hand the value to a task
of its own. Observers hear of the steps in their order. One of them is the log of turns, which both
inspectors read.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Generic, Literal, TypeVar

import structlog

from bot.model.call import CallReport
from bot.prompt.assemble import Prompt
from memory.behaviors.context import AgentContext
from memory.memory import Memory
from memory.queue.open_turn import OpenTurn
from memory.store.keys import Scope

log = structlog.get_logger(__name__)


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
    """Return one observer that tells all of them in their order, also those added later.

    It raises nothing. An observer of an operator that fails must end no turn and no polling.
    """

    def observe(event: Event) -> None:
        for each in observers:
            try:
                each(event)
            except Exception:  # the outer fence
                log.exception("observer failed", step=type(event).__name__)

    return observe


Words = TypeVar("Words")
_NO_ERROR = ("closed", "CancelledError", "Interrupted", "LeaseLost", "Parked")
"""Outcomes that are not errors: the turn ended as it should, or goes on elsewhere."""


@dataclass(frozen=True, slots=True)
class RunningTurn:
    """A turn under way, which began at `began_at` and its step at `since` (Unix seconds)."""

    conversation: str
    turn: str
    step: Step
    began_at: float
    since: float


@dataclass(frozen=True, slots=True)
class SeenError:
    """An error by the name of its class; both the person and the log have the `reference`."""

    at: float
    step: str
    error: str
    reference: str = ""
    conversation: str = ""


@dataclass(frozen=True, slots=True)
class AgentRun:
    """A run of the agent that ended at `at`, and took `seconds`."""

    at: float
    conversation: str
    seconds: float
    tool_steps: int
    tokens: Mapping[str, int]  # of its last prompt, by part


class TurnLog(Generic[Words]):
    """Observes the turns and model calls of one process.

    It keeps names of steps and errors, times and numbers: no text, no id of a person or chat;
    `name_of` names conversations. Only the playground opens it with words: `words_of` returns what
    else is kept of a run. Of runs and errors the latest `max_kept` stay.
    """

    def __init__(
        self,
        name_of: Callable[[Scope], str],
        words_of: Callable[[AgentRan], Words],
        max_kept: int = 20,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._name_of, self._words_of, self._clock = name_of, words_of, clock
        self.started_at = clock()
        self._running: dict[tuple[str, str], RunningTurn] = {}
        self.errors: deque[SeenError] = deque(maxlen=max_kept)
        self.runs: deque[tuple[AgentRun, Words]] = deque(maxlen=max_kept)  # the latest is last

    @property
    def running(self) -> list[RunningTurn]:
        """The turns under way, oldest first."""
        return sorted(self._running.values(), key=lambda turn: turn.began_at)

    def observe(self, event: Event) -> None:
        """Note a step of a turn, or a call to a model that failed."""
        fields = structlog.contextvars.get_contextvars()
        turn, tag = str(fields.get("turn", "")), str(fields.get("conversation", ""))
        match event:
            case StepBegan():
                now = self._clock()
                known = self._running.get((tag, turn))
                if known is None or event.step == "answer":
                    known = RunningTurn(self._named(tag), turn, event.step, now, now)
                self._running[tag, turn] = replace(known, step=event.step, since=now)
            case NotAnswered(reference, error):
                self._note(tag, turn, error, reference)
            case GaveUp(error) | PartSent(error) if error != "sent":
                self._note(tag, turn, error, turn)
            case AgentRan(context, seconds=seconds):
                numbers = seconds, len(context.completed_steps), dict(context.sizes)
                run = AgentRun(self._clock(), self._name_of(context.conversation), *numbers)
                self.runs.append((run, self._words_of(event)))
            case TurnEnded(outcome):
                if outcome not in _NO_ERROR:
                    self._note(tag, turn, outcome, turn)
                self._running.pop((tag, turn), None)
            case CallReport() if event.error is not None and event.outcome not in _NO_ERROR:
                step = f"{event.kind} call, {event.which} model"
                self._note(tag, turn, event.outcome, "", step)

    def _note(self, tag: str, turn: str, error: str, reference: str, step: str = "") -> None:
        running = self._running.get((tag, turn))
        step = step or (running.step if running else "")
        self.errors.append(SeenError(self._clock(), step, error, reference, self._named(tag)))

    def _named(self, tag: str) -> str:
        return self._name_of(Scope(tag)) if tag else ""
