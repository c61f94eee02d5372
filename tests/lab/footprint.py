"""Measures the bytes of a chat in Redis and in a worker's memory, by the length of its history."""

import asyncio

from tests.lab.bots import Running
from tests.lab.fleet import Fleet, fleet
from tests.lab.people import TEXTS, converse

CHATS = 300
FEW_TURNS = 2
TURNS = 10
_WARMING_CHATS = 32
_WARMING_TURNS = 4
_AT_ONCE = 48
_IDLE_CPU_S = 0.03
_KB = 1024


async def memory() -> dict[str, object]:
    """Return the size of a chat after ten turns, split into the chat's and the messages' share.

    Facts and other learned entries are not included, because the model finds nothing to learn. The
    worker keeps every chat warm here; by default it evicts the oldest ones at `CACHE_MB`.
    """
    async with fleet(workers=1, hurried=True, COALESCE_S="0", CACHE_MB="1024") as running:
        worker = running.workers[0]
        await _talk(running, range(100, 100 + _WARMING_CHATS), _WARMING_TURNS)
        await _quiet(worker)
        rss, empty = worker.resident_mb, await _used(running)
        chats = range(1_000, 1_000 + CHATS)
        await _talk(running, chats, FEW_TURNS)
        await _quiet(worker)
        few = (await _used(running) - empty) / CHATS
        await _talk(running, chats, TURNS - FEW_TURNS)
        await _quiet(worker)
        many = (await _used(running) - empty) / CHATS
        grown_mb = worker.resident_mb - rss
    a_message = (many - few) / (2 * (TURNS - FEW_TURNS))
    return {
        "chats": CHATS,
        "turns_each": TURNS,
        "redis_bytes_a_message": round(a_message),
        "redis_bytes_a_chat_in_addition": round(few - 2 * FEW_TURNS * a_message),
        "redis_mb_per_1000_chats": round(1000 * many / _KB**2, 1),
        "worker_mb_before": rss,
        "worker_mb_per_1000_chats": round(1000 * grown_mb / CHATS, 1),
    }


async def _talk(running: Fleet, persons: range, turns: int) -> None:
    """Let people talk, a few at a time, so that they do not wait for the worker's slots."""
    assert running.posting
    deliver, slots = running.posting.deliver, asyncio.Semaphore(_AT_ONCE)

    async def talk(person: int) -> None:
        async with slots:
            texts = [TEXTS[(person + turn) % len(TEXTS)] for turn in range(turns)]
            await converse(running.telegram, deliver, person, texts)

    await asyncio.gather(*map(talk, persons))


async def _quiet(worker: Running) -> None:
    """Wait until the work after a turn is done, that is, until almost no CPU time is used."""
    used = float("-inf")
    while worker.cpu_s - used > _IDLE_CPU_S:
        used = worker.cpu_s
        await asyncio.sleep(1)


async def _used(running: Fleet) -> int:
    return int((await running.redis.info("memory"))["used_memory"])
