"""Counts what is stored; never shows content."""

from dataclasses import dataclass
from time import time

from memory.store.client import RedisClient
from memory.store.keys import Keys, Scope

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
