"""Wrappers of turns and reminders: they name parts of replies, and know the turn of each call."""

from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import TypeVar

from bot.commands.sentences import Sentences
from bot.language.catalogue import Catalogue
from bot.model.model_errors import ModelError
from bot.reply.parts import Part
from bot.runtime.work import WorkLoop
from bot.telegram.chat import Chat
from bot.turn.answer import Answerer, AnswerStep
from bot.turn.deliver import Deliverer, InDoubt
from bot.turn.observers import Event
from bot.turn.outbox import Outbox
from bot.turn.request import Request
from bot.turn.turn import GiveUp, TurnRunner
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import FinishAction
from memory.queue.dead_letters import DeadLetters
from memory.queue.open_turn import Committed, OpenTurn
from memory.scopes.history import ChatHistory
from memory.store.errors import StoreError
from memory.work.item import WorkItem
from memory.work.items import TakenWork
from tests.lab.simulator import markers
from tests.lab.simulator.audit import Auditor
from tests.lab.simulator.chance import Chance
from tests.lab.simulator.loop import Died, Process
from tests.lab.simulator.markers import PartName
from tests.lab.simulator.records import Records
from tests.quiet_chat import no_export

SIGN = "⏰ w"
"""How the message of a reminder begins: with the marker of the message that asked for it."""

_DELAYS_S = 1.5, 4.0, 9.0

_TOKEN: ContextVar[str] = ContextVar("reminder", default="")
T = TypeVar("T")

_TURN: ContextVar[OpenTurn | None] = ContextVar("turn", default=None)


def token_of_reminder() -> str:
    """Return the token under which the caller delivers a reminder, "" for none."""
    return _TOKEN.get()


def remind(context: AgentContext) -> None:
    """Set a reminder or a task of the message itself, as the tool does if the model calls it.

    What a task says depends on that message, but does not contain it.
    """
    message, [number, *_] = context.user_message, context.user_message.message_ids
    if number < 0:
        return  # a task makes no task
    due = context.now + _DELAYS_S[number % len(_DELAYS_S)]
    at = datetime.fromtimestamp(due, UTC).isoformat()
    is_task = bool(number % 2)
    text = message.text.replace("w", "s") if is_task else message.text
    item = WorkItem(message.sender_id, text, at=at, due=due, is_task=is_task, message_id=number)
    context.work.added.append(item)


class NamingWorkLoop(WorkLoop):
    """Sends reminders so that each send knows its token, and the auditor which ones ended."""

    auditor: Auditor

    async def _send(self, taken: TakenWork) -> None:
        token = _TOKEN.set(taken.token)
        try:
            await super()._send(taken)
            self.auditor.records.reminders.ended[taken.token] = self.auditor.step
        finally:
            _TOKEN.reset(token)


class MadeUpBug(Exception):
    """Raised at random, as a bug in a turn would be."""


def token_of_turn() -> str:
    """Return the token of the caller's lease, "" outside of turns."""
    turn = _TURN.get()
    return turn.lease.token if turn else ""


def ignore(_: Event) -> None:
    """Observe nothing."""


@dataclass(frozen=True, slots=True)
class NamingRunner:
    """Runs turns so that each call knows its turn; some turns fail with a made-up bug."""

    runner: TurnRunner
    records: Records
    chance: Chance

    async def run(self, opened: OpenTurn) -> Committed:
        token = _TURN.set(opened)
        if self.chance.fate("turn") == "bug":
            raise MadeUpBug
        self.records.running += 1
        try:
            return await self.runner.run(opened)
        finally:
            self.records.running -= 1
            _TURN.reset(token)


class NamingDeliverer(Deliverer):
    """Delivers, and records leases that got no answer whether the part just sent counts."""

    def __init__(self, chat: Chat, timeout_s: float, records: Records) -> None:
        super().__init__(chat, timeout_s, no_export, ignore)
        self._records = records

    async def guard(self, in_doubt: InDoubt, step: Callable[[], Awaitable[T]]) -> T:
        async def noted() -> T:
            try:
                return await step()
            except StoreError:
                self._records.unanswered.add(token_of_turn())
                raise

        return await super().guard(in_doubt, noted)


class NamingAnswerer(Answerer):
    """Answers in one to three parts, each with the number of the reply and its own."""

    def __init__(self, steps: Sequence[AnswerStep], auditor: Auditor, chance: Chance) -> None:
        super().__init__(steps, remembered_sentences(), ignore)
        self._auditor = auditor
        self._chance = chance

    async def answer(self, request: Request, history: ChatHistory) -> Outbox:
        """Return the reply with its parts named."""
        outbox = await super().answer(request, history)
        return _named(outbox, _TURN.get(), self._auditor, self._chance)

    async def stop(self, request: Request, history: ChatHistory) -> Outbox:
        """Return what was shown of a reply, with its part named."""
        return _named(await super().stop(request, history), _TURN.get(), self._auditor)


class NamingGiveUp(GiveUp):
    """Gives up with a notice that has the number of the reply."""

    def __init__(self, letters: DeadLetters, auditor: Auditor) -> None:
        super().__init__(letters, remembered_sentences(), ignore)
        self._auditor = auditor

    def _notice(self, opened: OpenTurn) -> Outbox:
        return _named(super()._notice(opened), opened, self._auditor)


def _named(
    outbox: Outbox, opened: OpenTurn | None, auditor: Auditor, chance: Chance | None = None
) -> Outbox:
    """Return the reply of a turn with its parts named; an answer has one to three by `chance`."""
    assert opened is not None
    if not outbox.parts:
        return outbox
    number = auditor.asked(opened, is_answer=chance is not None)
    of = chance.random.randint(1, 3) if chance else 1
    parts = [Part(outbox.parts[0].text)] * (of - 1) + [outbox.parts[-1]]
    named = tuple(
        replace(part, text=markers.part_text(part.text, PartName(number, at, of)), entities=())
        for at, part in enumerate(parts, 1)
    )
    return replace(outbox, parts=named)


@dataclass(frozen=True, slots=True)
class SimulatedModel:
    """Answers with the question and the markers of all messages that it has seen."""

    process: Process
    chance: Chance
    reminds: bool = False
    shows: bool = True
    """Whether people see some of a reply before it is complete."""

    async def run(self, context: AgentContext) -> FinishAction:
        """Answer after a while, or fail as a model may."""
        fate = self.chance.fate("model")
        await self.process.travel(self.chance.random.uniform(0, 0.5))
        match fate:
            case "crash":
                self.process.crash()
                raise Died
            case "pause":
                self.process.pause(self.chance.pause())
            case "hangs":
                await self.process.travel(self.chance.random.uniform(2, 12))
            case "fails":
                raise ModelError("simulated")
        said = markers.answer_text(context.user_message.text, frozenset())
        opened = _TURN.get()
        if opened and self.shows and self.chance.random.random() < 0.5:
            opened.run.shown = said  # as a draft would
        await self.process.travel(self.chance.random.uniform(0, 0.5))
        seen = set(markers.written_by_people(context.background.window))
        for recollection in context.background.recalled:
            seen |= markers.written_by_people(recollection.messages)
        if self.reminds:
            remind(context)
        return FinishAction(markers.answer_text(context.user_message.text, frozenset(seen)))


class RememberedSentences(Sentences):
    """The catalogue's sentences; each is rendered once for all schedules."""

    def __init__(self, catalogue: Catalogue) -> None:
        super().__init__(catalogue)
        self._said: dict[tuple[str, ...], tuple[Part, ...]] = {}

    def say(self, language: str, *keys: str, **values: object) -> tuple[Part, ...]:
        """Return sentences as parts, with 0 for all counts and names."""
        del values
        named = (language, *keys)
        if named not in self._said:
            self._said[named] = super().say(language, *keys, **_VALUES)
        return self._said[named]


@cache
def remembered_sentences() -> RememberedSentences:
    """Return the sentences that all simulators of this interpreter share."""
    return RememberedSentences(Catalogue())


_VALUES: dict[str, object] = dict.fromkeys(
    (
        *("messages", "vectors", "waiting", "learned", "conversations", "reference"),
        *("username", "name", "bot", "ttl_days", "when", "unix", "text"),
    ),
    0,
)
