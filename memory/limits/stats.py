"""Counts what is stored of one conversation and of the whole bot; never shows content."""

from dataclasses import dataclass
from time import time

from memory.limits.dropping import Dropped
from memory.store.client import RedisClient
from memory.store.keys import SHARDS, Keys, Scope


@dataclass(frozen=True, slots=True)
class ConversationStats:
    """What is stored of one conversation; times in Unix seconds, 0 when there is nothing.

    `is_off` means that nothing new is remembered. `dropped` counts what was dropped because Redis
    was filling up.
    `off_record_until` is when the latest session off the record ends or ended.
    """

    messages: int
    vectors: int
    waiting: int
    first_at: float
    last_at: float
    epoch: int
    is_off: bool
    dropped: Dropped
    off_record_until: float = 0


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
            (
                *("HMGET", names.meta, "epoch", "off_at", "dropped_vectors", "dropped_messages"),
                "off_record",
            ),
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
        dropped=Dropped(int(meta[2] or 0), int(meta[3] or 0)),
        off_record_until=int(meta[4].split(b"|")[1]) / 1000 if meta[4] else 0,
    )


async def count_all(client: RedisClient, keys: Keys) -> BotStats:
    """Count what the bot keeps in all."""
    since = int(time()) - 86400
    shards = [keys.conversations(shard) for shard in range(SHARDS)]
    sizes = await client.pipeline([("ZCARD", shard) for shard in shards])
    active = await client.pipeline([("ZCOUNT", shard, since, "+inf") for shard in shards])
    wake_ups = await client.call("XLEN", keys.ready_queue)
    info = await client.info("memory")
    return BotStats(sum(sizes), sum(active), int(wake_ups), int(info.get("used_memory", 0)))
