"""Everything that the inspector shows of the whole bot, read from Redis when it is asked for."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from operator import attrgetter
from time import time

from pydantic import TypeAdapter, ValidationError

from bot.costs import Budget
from bot.features.inspector.turn_log import (
    ProcessReport,
    ProcessReports,
    PromptSizes,
    RunningTurn,
    SeenError,
)
from config.settings import Settings
from memory.limits.capacity import FillLevel
from memory.limits.usage import together
from memory.memory import Memory
from memory.queue.dead_letters import DeadLetter
from memory.scopes.stats import BotStats, count_all
from memory.store.commands import Reply
from memory.store.keys import Scope
from memory.store.store import Store

_REPORT = TypeAdapter(ProcessReport)
_MAX_ERRORS = 20
_MAX_PROMPTS = 10
_MAX_PEOPLE = 5
_MAX_WAKE_UPS = 20


@dataclass(frozen=True, slots=True)
class WaitingConversation:
    """A conversation with work."""

    scope: Scope
    since: float
    messages: int  # in its mailbox, those of a running turn included
    lease_s: float  # when its lease ends, 0 if nobody has it


@dataclass(frozen=True, slots=True)
class QueueStats:
    """What waits in all, never any content. Times are Unix seconds, 0 for none."""

    now: float  # the time of the server
    wake_ups: int
    jobs: int
    parked: int
    learning: int
    learning_overdue: int
    learning_since: float  # since when the oldest overdue learning has waited
    work: int
    waiting: tuple[WaitingConversation, ...]  # the oldest wake-ups
    leases: dict[str, float]  # seconds that are left of those that one process holds for all


@dataclass(frozen=True, slots=True)
class LiveState:
    """What is shown; errors and prompts of all processes come newest first."""

    reports: Sequence[ProcessReport]
    turns: Sequence[tuple[RunningTurn, str]]  # with the name of the process
    errors: Sequence[tuple[SeenError, str]]  # as above
    prompts: Sequence[PromptSizes]
    queue: QueueStats
    letters: Sequence[DeadLetter]
    stored: BotStats
    fill_level: FillLevel
    samples: Sequence[tuple[float, int, int]]
    tokens: int  # of this month
    spent: Decimal
    budget: Decimal  # 0 means no limit
    without_price: tuple[str, ...]
    people: Sequence[tuple[str, int, int]]  # with the most tokens: this month, in answers of today


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
        memory, prices = self._memory, self._budget.prices
        reports: list[ProcessReport] = []
        for each in await self._reports.read():
            with suppress(ValidationError):  # one of another version may have another form
                reports.append(_REPORT.validate_json(each))
        errors = [(error, report.process) for report in reports for error in report.errors]
        prompts = [prompt for report in reports for prompt in report.prompts]
        turns = [(turn, report.process) for report in reports for turn in report.turns]
        usage = await memory.usage.of_bot(time(), _MAX_PEOPLE)
        people = [
            (self.name_of(Scope.of_chat(person)), tokens, await memory.quotas.spent_today(person))
            for person, tokens in usage.people
        ]
        return LiveState(
            reports=reports,
            turns=sorted(turns, key=lambda each: each[0].began_at),
            errors=sorted(errors, key=lambda each: -each[0].at)[:_MAX_ERRORS],
            prompts=sorted(prompts, key=attrgetter("at"), reverse=True)[:_MAX_PROMPTS],
            queue=await _read_queue(memory.store),
            letters=await memory.dead_letters.listed(),
            stored=await count_all(memory.store),
            fill_level=await memory.capacity.fill_level(),
            samples=max((report.capacity for report in reports), key=len, default=()),
            tokens=together(usage.sums).total,
            spent=prices.cost(usage.sums),
            budget=self._budget.amount,
            without_price=prices.missing(usage.sums) if prices else (),
            people=people,
        )


async def _read_queue(store: Store) -> QueueStats:
    """Count what waits, in three round trips; raise `StoreError`."""
    client, keys = store.client, store.keys
    now = await client.server_time()
    (wake_ups, jobs, parked, learning, overdue, late, work, *rest) = await client.pipeline(
        [
            ("XLEN", keys.ready_queue),
            ("XLEN", keys.jobs),
            ("ZCARD", keys.due),
            ("ZCARD", keys.learning),
            ("ZCOUNT", keys.learning, "-inf", now),
            ("ZRANGE", keys.learning, 0, 0, "WITHSCORES"),
            ("ZCARD", keys.work),
            ("XRANGE", keys.ready_queue, "-", "+", "COUNT", _MAX_WAKE_UPS),
            ("PTTL", keys.poller),
            ("PTTL", keys.sweeper),
            ("PTTL", keys.capacity_lease),
        ]
    )
    entries, *leases = rest
    return QueueStats(
        now=now,
        wake_ups=wake_ups,
        jobs=jobs,
        parked=parked,
        learning=learning,
        learning_overdue=overdue,
        learning_since=late[0][1] if overdue else 0.0,
        work=work,
        waiting=await _waiting(store, entries),
        leases=dict(zip(("poller", "sweeper", "capacity"), map(_left_s, leases), strict=True)),
    )


async def _waiting(store: Store, entries: Reply) -> tuple[WaitingConversation, ...]:
    since: dict[Scope, float] = {}
    for entry, fields in entries:
        since.setdefault(Scope(fields[b"c"].decode()), int(entry.split(b"-")[0]) / 1000)
    names = [store.keys.scope(scope) for scope in since]
    replies = await store.client.pipeline(
        [command for name in names for command in (("ZCARD", name.mailbox), ("PTTL", name.lease))]
    )
    counts, leases = replies[::2], replies[1::2]
    return tuple(
        WaitingConversation(scope, at, count, _left_s(lease))
        for (scope, at), count, lease in zip(since.items(), counts, leases, strict=True)
    )


def _left_s(ttl_ms: int) -> float:
    return max(0, ttl_ms) / 1000
