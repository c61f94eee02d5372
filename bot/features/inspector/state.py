"""What the inspector shows of the whole bot: the reports of all processes, and the rest of Redis.

While an operator watches, each process writes what its log of turns has. The rest is read when it
is asked for.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from secrets import token_hex
from time import time
from typing import NoReturn

import orjson
import structlog
from pydantic import TypeAdapter, ValidationError

from bot.costs import Budget
from bot.model.resilience import ModelCondition
from bot.turn.observers import AgentRun, RunningTurn, SeenError, TurnLog
from config.settings import Settings
from memory.limits.capacity import FillLevel
from memory.limits.usage import together
from memory.memory import Memory
from memory.scopes.stats import count_all
from memory.store.commands import Command, Reply
from memory.store.errors import StoreError
from memory.store.keys import Scope
from memory.store.store import Store

log = structlog.get_logger(__name__)

WATCHED = "watched"  # the topic of notes that say: an operator watches

WATCHED_S = 15.0  # how long every process goes on reporting after each look
_EVERY_S = 2.0
_EXPIRES_MS = 6_000
_REPORTERS_S = 60
_MAX_REPORTERS = 64
MAX_REPORT_BYTES = 32_768
_MAX_LISTED = 40


@dataclass(frozen=True, slots=True)
class ProcessReport:
    """What one process reports; `capacity` has samples of (Unix seconds, bytes used, limit)."""

    process: str
    duty: str
    started_at: float
    running: int
    turns: tuple[RunningTurn, ...]
    errors: tuple[SeenError, ...]
    prompts: tuple[AgentRun, ...]
    models: tuple[Mapping[str, object], ...]  # how well each answers; see `_state_of`
    capacity: tuple[tuple[float, int, int], ...]


class ProcessReports:
    """Writes the report of this process, and reads those of all, while an operator watches."""

    def __init__(self, store: Store, watched: asyncio.Event) -> None:
        self.process = f"{socket.gethostname()[:24]}-{os.getpid()}-{token_hex(2)}"
        self._store = store
        self._reporters = store.keys.prefix + "reporters"
        self._watched = watched

    def key(self, process: str) -> str:
        """Name the report of one process."""
        return f"{self._store.keys.prefix}report:{process}"

    async def watch(self) -> None:
        """Have every process report for the next seconds."""
        await self._store.note(WATCHED)
        self._watched.set()

    async def keep_writing(self, report: Callable[[], bytes]) -> NoReturn:
        """Write what `report` returns again and again while somebody watches, until cancelled."""
        loop = asyncio.get_running_loop()
        until = 0.0
        while True:
            if loop.time() > until:
                await self._watched.wait()
            if self._watched.is_set():
                self._watched.clear()
                until = loop.time() + WATCHED_S
            with suppress(StoreError):
                await self.write(report())
            await asyncio.sleep(_EVERY_S)

    async def write(self, report: bytes) -> None:
        """Write a report; one that is too long is left out. Raise `StoreError`."""
        if len(report) > MAX_REPORT_BYTES:
            log.warning("report too long", nbytes=len(report))
            return
        await self._store.client.pipeline(
            [
                ("SET", self.key(self.process), report, "PX", _EXPIRES_MS),
                ("SADD", self._reporters, self.process),
                ("EXPIRE", self._reporters, _REPORTERS_S),
            ]
        )

    async def read(self) -> list[bytes]:
        """Return the reports of the processes that live, in the order of their names."""
        names = await self._store.client.call("SMEMBERS", self._reporters)
        names = sorted(name.decode() for name in names)[:_MAX_REPORTERS]
        if not names:
            return []
        reports = await self._store.client.pipeline([("GET", self.key(name)) for name in names])
        return [report for report in reports if report is not None]


def report_of(
    turns: TurnLog[None],
    process: str,
    duty: str,
    conditions: Sequence[ModelCondition],
    levels: Iterable[tuple[float, FillLevel]],
) -> bytes:
    """Return the `ProcessReport` of this process as JSON, with its oldest turns."""
    running = turns.running
    report = ProcessReport(
        process=process,
        duty=duty,
        started_at=turns.started_at,
        running=len(running),
        turns=tuple(running[:_MAX_LISTED]),
        errors=tuple(turns.errors),
        prompts=tuple(run for run, _ in turns.runs),
        models=tuple(map(_state_of, conditions)),
        capacity=tuple((at, level.used, level.limit) for at, level in levels),
    )
    return orjson.dumps(report)


def _state_of(condition: ModelCondition) -> dict[str, object]:
    return {
        "part": condition.part,
        "answered_at": condition.answered_at,  # Unix seconds, 0 for never; so is the next one
        "failing_since": condition.failing_since,
        "error": type(condition.error).__name__ if condition.failing_since else "",
        "rests_s": condition.breaker.rests_s if condition.breaker.is_open else 0.0,
    }


_REPORT = TypeAdapter(ProcessReport)
_MAX_ERRORS = 20
_MAX_PROMPTS = 10
_MAX_PEOPLE = 5
_MAX_WAKE_UPS = 20


@dataclass(frozen=True, slots=True, eq=False)
class LiveReader:
    """Reads the state of one bot."""

    settings: Settings
    memory: Memory
    reports: ProcessReports
    name_of: Callable[[Scope], str]

    async def read(self) -> dict[str, object]:
        """Return the state as it is now, with the reports that `ProcessReports.watch` asks for.

        Only the template reads the values. Times are Unix seconds; errors and prompts of all
        processes come newest first. Raise `StoreError`.
        """
        memory, budget = self.memory, Budget(self.settings, self.memory.usage, self.memory.quotas)
        prices = budget.prices
        reports: list[ProcessReport] = []
        for each in await self.reports.read():
            with suppress(ValidationError):  # one of another version may have another form
                reports.append(_REPORT.validate_json(each))
        errors = [(error, report.process) for report in reports for error in report.errors]
        prompts = [prompt for report in reports for prompt in report.prompts]
        turns = [(turn, report.process) for report in reports for turn in report.turns]
        usage = await memory.usage.of_bot(time(), _MAX_PEOPLE)
        # With the most tokens: this month, and in answers of today.
        people = [
            (self.name_of(Scope.of_chat(person)), tokens, await memory.quotas.spent_today(person))
            for person, tokens in usage.people
        ]
        return {
            "reports": reports,
            "turns": sorted(turns, key=lambda each: each[0].began_at),
            "errors": sorted(errors, key=lambda each: -each[0].at)[:_MAX_ERRORS],
            "prompts": sorted(prompts, key=attrgetter("at"), reverse=True)[:_MAX_PROMPTS],
            "queue": await _read_queue(memory.store),
            "letters": await memory.dead_letters.listed(),
            "stored": await count_all(memory.store),
            "fill_level": await memory.capacity.fill_level(),
            "samples": max((report.capacity for report in reports), key=len, default=()),
            "tokens": together(usage.sums).total,  # of this month
            "spent": prices.cost(usage.sums),
            "budget": self.settings.budget_per_month,  # 0 means no limit
            "without_price": prices.missing(usage.sums) if prices else (),
            "people": people,
        }


async def _read_queue(store: Store) -> dict[str, object]:
    """Count what waits, never any content, in three round trips; raise `StoreError`."""
    client, keys = store.client, store.keys
    now = await client.server_time()
    counted: dict[str, Command] = {
        "wake_ups": ("XLEN", keys.ready_queue),
        "jobs": ("XLEN", keys.jobs),
        "parked": ("ZCARD", keys.due),
        "learning": ("ZCARD", keys.learning),
        "learning_overdue": ("ZCOUNT", keys.learning, "-inf", now),
        "work": ("ZCARD", keys.work),
    }
    # Of those that one process holds for all; the seconds that are left.
    leases = {"poller": keys.poller, "sweeper": keys.sweeper}
    *found, late, oldest = await client.pipeline(
        [
            *counted.values(),
            *(("PTTL", lease) for lease in leases.values()),
            ("ZRANGE", keys.learning, 0, 0, "WITHSCORES"),
            ("XRANGE", keys.ready_queue, "-", "+", "COUNT", _MAX_WAKE_UPS),
        ]
    )
    counts = dict(zip(counted, found, strict=False))
    left = map(_left_s, found[len(counted) :])
    return counts | {
        "now": now,
        "learning_since": late[0][1] if counts["learning_overdue"] else 0.0,
        "waiting": await _waiting(store, oldest),  # the oldest wake-ups
        "leases": dict(zip(leases, left, strict=True)),
    }


async def _waiting(store: Store, entries: Reply) -> list[dict[str, object]]:
    """Return the conversations with work: their messages, with those of a running turn."""
    since: dict[Scope, float] = {}
    for entry, fields in entries:
        since.setdefault(Scope(fields[b"c"].decode()), int(entry.split(b"-")[0]) / 1000)
    names = [store.keys.scope(scope) for scope in since]
    replies = await store.client.pipeline(
        [command for name in names for command in (("ZCARD", name.mailbox), ("PTTL", name.lease))]
    )
    counts, leases = replies[::2], replies[1::2]
    return [
        {"scope": scope, "since": at, "messages": count, "lease_s": _left_s(lease)}
        for (scope, at), count, lease in zip(since.items(), counts, leases, strict=True)
    ]


def _left_s(ttl_ms: int) -> float:
    return max(0, ttl_ms) / 1000
