"""What waits in the queues of one bot, and who holds the leases; never any content."""

from dataclasses import dataclass

from memory.store.commands import Reply
from memory.store.keys import Scope
from memory.store.store import Store

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
    """What waits in all. Times are Unix seconds, 0 for none."""

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


async def read_queue_stats(store: Store) -> QueueStats:
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
    """Return the conversations of wake-ups, oldest first, each once."""
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
