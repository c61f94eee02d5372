"""Everything that the inspector shows, read from Redis when the page is asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from operator import attrgetter
from time import time

from pydantic import TypeAdapter, ValidationError

from bot.costs.budget import Budget
from bot.live.live_turns import (
    ConversationNames,
    ProcessReport,
    PromptSizes,
    RunningTurn,
    SeenError,
)
from config.settings import Settings
from memory.limits.billed import together
from memory.limits.capacity import CapacityStats
from memory.limits.queue_stats import QueueStats, read_queue_stats
from memory.limits.stats import BotStats, count_all
from memory.memory import Memory
from memory.store.keys import Scope

_REPORT = TypeAdapter(ProcessReport)
_MAX_ERRORS = 20
_MAX_PROMPTS = 10
_MAX_PEOPLE = 5


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
    stored: BotStats
    capacity: CapacityStats
    samples: Sequence[tuple[float, int, int]]
    spend: Spend


class LiveReader:
    """Reads the state of one bot."""

    def __init__(self, settings: Settings, memory: Memory, names: ConversationNames) -> None:
        self.settings = settings
        self.names = names
        self.watch = memory.reports.watch
        self._memory = memory
        self._budget = Budget(settings, memory.usage)

    async def read(self) -> LiveState:
        """Return the state as it is now, with the reports that `watch` asks for.

        Raise `StoreError`.
        """
        memory = self._memory
        reports = [report for each in await memory.reports.read() if (report := _parsed(each))]
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
            stored=await count_all(memory.client, memory.keys),
            capacity=await memory.capacity.stats(),
            samples=max((report.capacity for report in reports), key=len, default=()),
            spend=await self._spend(),
        )

    async def _spend(self) -> Spend:
        usage = await self._memory.usage.of_bot(time(), _MAX_PEOPLE)
        people = [
            PersonQuota(
                self.names.name(Scope.of_person(person)),
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
