"""Counts what is stored, of one conversation and in all. No content is read."""

from dataclasses import dataclass
from time import time

from memory.store.keys import Scope
from memory.store.store import Store


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


async def count_conversation(store: Store, conversation: Scope) -> ConversationStats:
    """Count what is stored of a conversation, in one round trip."""
    names = store.keys.scope(conversation)
    messages, vectors, waiting, first, last, meta = await store.client.pipeline(
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


async def count_all(store: Store) -> BotStats:
    """Count what the bot keeps in all."""
    client, keys, since = store.client, store.keys, int(time()) - 86_400
    indexes = keys.conversations
    sizes = await client.pipeline([("ZCARD", index) for index in indexes])
    active = await client.pipeline([("ZCOUNT", index, since, "+inf") for index in indexes])
    wake_ups = await client.call("XLEN", keys.ready_queue)
    info = await client.info("memory")
    return BotStats(sum(sizes), sum(active), int(wake_ups), int(info.get("used_memory", 0)))
