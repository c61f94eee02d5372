"""Everything that the inspector shows of the whole bot, read from Redis when it is asked for."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from time import time

from pydantic import TypeAdapter, ValidationError

from bot.costs import Budget
from bot.features.inspector.turn_log import ProcessReport, ProcessReports
from config.settings import Settings
from memory.limits.usage import together
from memory.memory import Memory
from memory.scopes.stats import count_all
from memory.store.commands import Command, Reply
from memory.store.keys import Scope
from memory.store.store import Store

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
        memory, budget = self.memory, Budget(self.settings, self.memory.usage)
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
            "budget": budget.amount,  # 0 means no limit
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
    leases = {"poller": keys.poller, "sweeper": keys.sweeper, "capacity": keys.capacity_lease}
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
