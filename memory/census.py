"""Counts and times for people and operators: what is stored of a conversation, how much of all.

Never content.
"""

from dataclasses import dataclass
from time import time

from memory.keys import SHARDS, Conversation, Keys
from memory.plan.dropping import Dropped
from memory.redis_client import RedisClient


@dataclass(frozen=True, slots=True)
class ConversationCensus:
    """What is stored of one conversation; times in Unix seconds, 0 when there is nothing.

    `is_off` where nothing new is to be remembered; `dropped` counts what went for want of room.
    """

    messages: int
    vectors: int
    waiting: int
    first_at: float
    last_at: float
    epoch: int
    is_off: bool
    dropped: Dropped


@dataclass(frozen=True, slots=True)
class BotCensus:
    """What the bot keeps in all; `redis_bytes` is the whole server's."""

    conversations: int
    active_last_day: int
    bells: int
    redis_bytes: int


async def count_conversation(
    client: RedisClient, keys: Keys, conversation: Conversation
) -> ConversationCensus:
    """Count what is stored of a conversation, in one round trip."""
    names = keys.conversation(conversation)
    messages, vectors, waiting, first, last, meta = await client.pipeline(
        [
            ("XLEN", names.log),
            ("XLEN", names.vectors),
            ("ZCARD", names.mailbox),
            ("XRANGE", names.log, "-", "+", "COUNT", 1),
            ("XREVRANGE", names.log, "+", "-", "COUNT", 1),
            ("HMGET", names.meta, "epoch", "off_at", "dropped_vectors", "dropped_messages"),
        ]
    )
    return ConversationCensus(
        messages=messages,
        vectors=vectors,
        waiting=waiting,
        first_at=float(first[0][1][b"s"]) if first else 0.0,
        last_at=float(last[0][1][b"s"]) if last else 0.0,
        epoch=int(meta[0] or 0),
        is_off=meta[1] is not None,
        dropped=Dropped(int(meta[2] or 0), int(meta[3] or 0)),
    )


async def count_all(client: RedisClient, keys: Keys) -> BotCensus:
    """Count what the bot keeps in all."""
    since = int(time()) - 86400
    shards = [keys.conversations(shard) for shard in range(SHARDS)]
    sizes = await client.pipeline([("ZCARD", shard) for shard in shards])
    active = await client.pipeline([("ZCOUNT", shard, since, "+inf") for shard in shards])
    bells = await client.call("XLEN", keys.doorbell)
    info = await client.info("memory")
    return BotCensus(sum(sizes), sum(active), int(bells), int(info.get("used_memory", 0)))
