"""Measures the cold start of a long conversation while another one talks.

    python -m tests.lab.cold_start [MESSAGES ...]

A made-up conversation (see `made_up`) is stored in a real Valkey. Then this process starts anew and
searches it once, which reads and indexes all of it: first alone, then while a short conversation
has one turn after another. The output is one JSON line for each length: seconds until it was found,
processor seconds (the turns' own included), the longest time for which the event loop was held, and
the milliseconds of the turns meanwhile. `rss_mb` is what the process grew by when it was alone.
"""

# Before numpy, which `memory` tells how many threads to use.
from memory.scopes.history import ChatHistory

# isort: split
import asyncio
import gc
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from memory.store.client import RedisClient
from memory.store.keys import Scope
from memory.text.tokens import TokenCounter
from tests.lab.figures import milliseconds, resident_mb
from tests.lab.index import CHAT, Conversation, K, main
from tests.lab.made_up import made_up
from tests.lab.recall import found_alone

SIZES = (10_000, 100_000)
OTHER_MESSAGES = 200
TICK_S = 0.001


@dataclass
class Meanwhile:
    """What the event loop and another conversation do; a list entry is in seconds."""

    late: list[float] = field(default_factory=list)
    turns: list[float] = field(default_factory=list)
    is_over: bool = False

    async def tick(self) -> None:
        """Note by how much each tick came late."""
        while not self.is_over:
            began = time.perf_counter()
            await asyncio.sleep(TICK_S)
            self.late.append(time.perf_counter() - began - TICK_S)

    async def talk(self, turn: Callable[[], Awaitable[None]]) -> None:
        while not self.is_over:
            began = time.perf_counter()
            await turn()
            self.turns.append(time.perf_counter() - began)


async def observed(
    turn: Callable[[], Awaitable[None]], work: Awaitable[dict[str, float]]
) -> dict[str, object]:
    """Return figures of some work, the longest hold of the loop, and times of turns meanwhile."""
    meanwhile = Meanwhile()

    async def end() -> dict[str, float]:
        figures = await work
        meanwhile.is_over = True
        return figures

    figures, *_ = await asyncio.gather(end(), meanwhile.tick(), meanwhile.talk(turn))
    return {
        **figures,
        "loop_held_ms": round(1000 * max(meanwhile.late), 1),
        "turns": milliseconds(meanwhile.turns or [0.0]),
    }


async def measure(size: int, redis: str) -> dict[str, object]:
    client, tokens = await RedisClient.open(redis), await TokenCounter.load()
    other = Conversation(client, tokens, made_up(OTHER_MESSAGES))
    other.chat = Scope.of_chat(7)
    long = Conversation(client, tokens, made_up(size))
    for each in (other, long):
        await each.store()
    await other.turn()  # the first one loads what later ones have
    gc.collect()
    gc.freeze()  # what this laboratory made up is not a part of the bot
    before_mb = resident_mb(os.getpid())
    alone = await first_search(long)
    grown = resident_mb(os.getpid()) - before_mb
    during = await observed(other.turn, first_search(long))
    await client.close()
    return {
        "messages": size,
        "alone": alone,
        "during": during,
        "load": os.getloadavg()[0],
        "rss_mb": round(grown, 1),
    }


async def first_search(long: Conversation) -> dict[str, float]:
    """Read and search a conversation after a start; return seconds and processor seconds."""
    memory = long.restarted()
    began, worked = time.perf_counter(), time.process_time()
    history = await ChatHistory.read(memory.histories, CHAT)
    await found_alone(history, long.labelled.questions[0].text, K)
    return {
        "found_s": round(time.perf_counter() - began, 2),
        "cpu_s": round(time.process_time() - worked, 2),
    }


if __name__ == "__main__":
    main(measure, SIZES)
