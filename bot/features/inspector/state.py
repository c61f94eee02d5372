"""Everything that the inspector shows, read from Redis when the page is asked for.

Also one conversation with its words, as long as its people let the operator look.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from operator import attrgetter
from time import time

import structlog
from pydantic import TypeAdapter, ValidationError

from bot.commands.sentences import Sentences
from bot.commands.used_memories import UsedMemories
from bot.costs import Budget
from bot.features.inspector.operator_look import OperatorLook
from bot.features.inspector.queue_stats import QueueStats, read_queue_stats
from bot.features.inspector.turn_log import (
    ProcessReport,
    ProcessReports,
    PromptSizes,
    RunningTurn,
    SeenError,
)
from config.settings import Settings
from memory.limits.capacity import BotStats, FillLevel, count_all
from memory.limits.usage import together
from memory.memory import Memory
from memory.message import Message
from memory.queue.dead_letters import DeadLetter
from memory.scopes.history import ChatHistory
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

_REPORT = TypeAdapter(ProcessReport)
_MAX_ERRORS = 20
_MAX_PROMPTS = 10
_MAX_PEOPLE = 5
_MAX_MESSAGES = 20
_LANGUAGE = "en"


@dataclass(frozen=True, slots=True)
class PersonQuota:
    """One of the people with the most tokens this month; `today` counts answers only."""

    name: str
    month: int
    today: int


@dataclass(frozen=True, slots=True)
class Spend:
    """This month's tokens and costs; a `budget` of 0 means no limit."""

    tokens: int
    spent: Decimal
    budget: Decimal
    without_price: tuple[str, ...]
    people: tuple[PersonQuota, ...]


@dataclass(frozen=True, slots=True)
class LiveState:
    """What is shown; errors and prompts of all processes come newest first."""

    reports: Sequence[ProcessReport]
    turns: Sequence[tuple[RunningTurn, str]]
    errors: Sequence[tuple[SeenError, str]]
    prompts: Sequence[PromptSizes]
    queue: QueueStats
    letters: Sequence[DeadLetter]
    stored: BotStats
    fill_level: FillLevel
    samples: Sequence[tuple[float, int, int]]
    spend: Spend


class LiveReader:
    """Reads the state of one bot."""

    def __init__(
        self,
        settings: Settings,
        memory: Memory,
        reports: ProcessReports,
        name_of: Callable[[Scope], str],
    ) -> None:
        self.settings = settings
        self.name_of = name_of
        self.watch = reports.watch
        self._reports = reports
        self._memory = memory
        self._budget = Budget(settings, memory.usage)

    async def read(self) -> LiveState:
        """Return the state as it is now, with the reports that `watch` asks for.

        Raise `StoreError`.
        """
        memory = self._memory
        reports = [report for each in await self._reports.read() if (report := _parsed(each))]
        errors = chain.from_iterable(
            ((error, report.process) for error in report.errors) for report in reports
        )
        prompts = chain.from_iterable(report.prompts for report in reports)
        turns = [(turn, report.process) for report in reports for turn in report.turns]
        return LiveState(
            reports=reports,
            turns=sorted(turns, key=lambda each: each[0].began_at),
            errors=sorted(errors, key=lambda each: -each[0].at)[:_MAX_ERRORS],
            prompts=sorted(prompts, key=attrgetter("at"), reverse=True)[:_MAX_PROMPTS],
            queue=await read_queue_stats(memory.store),
            letters=await memory.dead_letters.listed(),
            stored=await count_all(memory.client, memory.keys),
            fill_level=await memory.capacity.fill_level(),
            samples=max((report.capacity for report in reports), key=len, default=()),
            spend=await self._spend(),
        )

    async def _spend(self) -> Spend:
        usage = await self._memory.usage.of_bot(time(), _MAX_PEOPLE)
        people = [
            PersonQuota(
                self.name_of(Scope.of_chat(person)),
                tokens,
                await self._memory.quotas.spent_today(person),
            )
            for person, tokens in usage.people
        ]
        prices = self._budget.prices
        return Spend(
            tokens=together(usage.sums).total,
            spent=prices.cost(usage.sums),
            budget=self._budget.amount,
            without_price=prices.missing(usage.sums) if prices else (),
            people=tuple(people),
        )


def _parsed(report: bytes) -> ProcessReport | None:
    """Read a report; one of another version may have another form."""
    try:
        return _REPORT.validate_json(report)
    except ValidationError:
        return None


@dataclass(frozen=True, slots=True)
class SeenMessage:
    """A message, and for an answer the memories that it used, one line each."""

    message: Message
    memories: Sequence[str]


@dataclass(frozen=True, slots=True)
class SeenConversation:
    """The newest messages of a conversation, oldest first; `until` is in Unix seconds."""

    until: float
    messages: Sequence[SeenMessage]


class LookReader:
    """Reads conversations from the store; nothing of them is kept here."""

    def __init__(self, memory: Memory, look: OperatorLook, sentences: Sentences) -> None:
        self.look = look
        self._histories = memory.histories
        self._sentences = sentences
        self._used = UsedMemories(memory.histories, sentences)

    async def read(self, conversation: Scope) -> SeenConversation | None:
        """Return the newest messages; None if that is not allowed, or no longer."""
        if not await self.look.until(conversation):
            return None
        history = await ChatHistory.read(self._histories, conversation)
        messages = [
            SeenMessage(message, await self._memories(conversation, message))
            for message in history.messages[-_MAX_MESSAGES:]
        ]
        # Once more, because the people may have ended it while we read.
        until = await self.look.until(conversation)
        log.info("operator looked", conversation=conversation.tag, shown=bool(until))
        return SeenConversation(until, messages) if until else None

    async def _memories(self, conversation: Scope, message: Message) -> list[str]:
        if message.role != "assistant" or not message.rests_on_memory:
            return []
        used = await self._used.read(_LANGUAGE, conversation, message.seq)
        lines = []
        for number, each in enumerate(used, 1):
            values = {"number": number, **each.entry.values}
            parts = self._sentences.say(_LANGUAGE, each.entry.key, **values)
            lines.append(" ".join(part.text for part in parts))
        return lines
