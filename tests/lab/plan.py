"""Measures how many messages with vectors a small Redis holds, by filling it.

    python -m tests.lab.plan [DIMENSIONS [MB]]

The output is one JSON line: the number of messages of 200 characters, from 20 people, until the bot
begins to drop old ones (at 90 %) and until the server refuses writes.
"""

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

from memory.memory import Memory, MemoryOptions
from memory.queue.turns import TurnTimes
from memory.store.client import RedisClient
from memory.store.errors import StoreFull
from memory.store.keys import Scope
from memory.text.tokens import TokenCounter
from tests.memory.limits.old_days import DAY_S, OldDays
from tests.valkey import ValkeyServer

PEOPLE = 20
EXCHANGES = 64
DROP_ABOVE = 0.9


async def measure(redis: str, dimensions: int) -> dict[str, object]:
    """Fill the server until it refuses, and return the figures."""
    client = await RedisClient.open(redis)
    options = MemoryOptions(365 * DAY_S, 80, 10**6, TurnTimes())
    memory = Memory(client, 1, await TokenCounter.load(), None, options)
    old_days = OldDays(memory, dimensions)
    since = time.time() - 60 * DAY_S
    messages = until_dropping = 0
    try:
        while True:
            person = 1000 + messages // (2 * EXCHANGES) % PEOPLE
            since += 3600
            await old_days.talk(
                Scope.of_chat(person),
                EXCHANGES,
                since=since,
                until=since + 3600,
                sender=person,
                fingerprint=f"made-up:{dimensions}",
            )
            messages += 2 * EXCHANGES
            if (await memory.capacity.stats()).fill_level.share < DROP_ABOVE:
                until_dropping = messages
    except StoreFull:
        used = (await memory.capacity.stats()).fill_level.used
    await client.close()
    return {
        "dimensions": dimensions,
        "messages_until_dropping": until_dropping,
        "messages_until_refused": messages,
        "bytes_a_message": round(used / messages),
    }


def main(dimensions: int = 512, plan_mb: int = 25) -> None:
    """Measure on a Valkey of its own."""
    with (
        tempfile.TemporaryDirectory() as scratch,
        ValkeyServer(Path(scratch), "--maxmemory", f"{plan_mb}mb") as server,
    ):
        figures = asyncio.run(measure(server.url, dimensions))
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
