"""Counts what is stored, and what waits: never shows content."""

from dataclasses import dataclass
from time import time

from memory.store.client import RedisClient
from memory.store.commands import Reply
from memory.store.keys import Keys, Scope
from memory.store.store import Store

_COMPARED = 200
"""Conversations among which the busiest are looked for."""


@dataclass(frozen=True, slots=True)
class ConversationStats:
    """What is stored of one conversation; times in Unix seconds, 0 when there is nothing."""

    messages: int
    vectors: int
    waiting: int
    first_at: float
    last_at: float
    epoch: int
    is_off: bool  # nothing new is remembered
    off_record_until: float = 0  # when the latest session off the record ends or ended
    is_quiet: bool = False  # no mark shows what was learned


@dataclass(frozen=True, slots=True)
class BotStats:
    """What the bot keeps in all; `redis_bytes` is the whole server's."""

    conversations: int
    active_last_day: int
    wake_ups: int
    redis_bytes: int


async def count_conversation(
    client: RedisClient, keys: Keys, conversation: Scope
) -> ConversationStats:
    """Count what is stored of a conversation, in one round trip."""
    names = keys.scope(conversation)
    messages, vectors, waiting, first, last, meta = await client.pipeline(
        [
            ("XLEN", names.log),
            ("XLEN", names.vectors),
            ("ZCARD", names.mailbox),
            ("XRANGE", names.log, "-", "+", "COUNT", 1),
            ("XREVRANGE", names.log, "+", "-", "COUNT", 1),
            ("HMGET", names.meta, "epoch", "off_at", "off_record", "quiet"),
        ]
    )
    return ConversationStats(
        messages=messages,
        vectors=vectors,
        waiting=waiting,
        first_at=float(first[0][1][b"s"]) if first else 0.0,
        last_at=float(last[0][1][b"s"]) if last else 0.0,
        epoch=int(meta[0] or 0),
        is_off=meta[1] is not None,
        off_record_until=int(meta[2].split(b"|")[1]) / 1000 if meta[2] else 0,
        is_quiet=(meta[3] or b"").endswith(b"|1"),
    )


async def count_all(client: RedisClient, keys: Keys) -> BotStats:
    """Count what the bot keeps in all."""
    since = int(time()) - 86400
    sizes = await client.pipeline([("ZCARD", index) for index in keys.conversations])
    active = await client.pipeline(
        [("ZCOUNT", index, since, "+inf") for index in keys.conversations]
    )
    wake_ups = await client.call("XLEN", keys.ready_queue)
    info = await client.info("memory")
    return BotStats(sum(sizes), sum(active), int(wake_ups), int(info.get("used_memory", 0)))


async def busiest_conversations(
    client: RedisClient, keys: Keys, count: int
) -> list[tuple[int, float, Scope]]:
    """Return those with most messages among the conversations that were active last.

    Each with the number of its messages and the time when it was active last.
    """
    replies = await client.pipeline(
        [("ZREVRANGE", index, 0, _COMPARED - 1, "WITHSCORES") for index in keys.conversations]
    )
    found = [(float(at), Scope(tag.decode())) for reply in replies for tag, at in reply]
    newest = sorted(found, key=lambda each: -each[0])[:_COMPARED]
    sizes = await client.pipeline([("XLEN", keys.scope(scope).log) for _, scope in newest])
    compared = [(int(size), *each) for size, each in zip(sizes, newest, strict=True)]
    return sorted(compared, key=lambda each: each[:2], reverse=True)[:count]


_MAX_LISTED = 20


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
            ("XRANGE", keys.ready_queue, "-", "+", "COUNT", _MAX_LISTED),
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
