"""Measures what a failover loses: one of three primaries dies under load while its replica lags.

    python -m tests.lab.cluster

Each run has its own Cluster. It pauses a replica for the given time, then kills its primary: one
with conversations only, or the one with the ready queue, which all workers read. `lost` counts
accepted updates that were never answered; Telegram does not deliver them again. `oldest` is how
long before the death the first of them was accepted. `doubled` counts updates whose answer was sent
once more, because it was being sent when the primary died.
"""

import asyncio
import logging
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import count, product
from pathlib import Path

import structlog

from memory.memory import Memory, MemoryOptions
from memory.queue.turn_store import TurnTimes
from memory.store.client import RedisClient
from memory.store.keys import Scope
from memory.text.tokens import TokenCounter
from tests.lab.cluster.day import Day, accept, work
from tests.lab.cluster.nodes import VICTIMS, ThreeNodeCluster, primary_of_victim
from tests.valkey import ValkeyServer

LAGS_S = (0.0, 0.1, 1.0)
PEOPLE = 30
BEFORE_S = 2.0
AFTER_S = 4.0
LEASE_S = 2.0
QUIET_S = 3 * LEASE_S
HEADER = (
    "dies | replica stopped for | INTAKE_WAIT_REPLICAS | accepted | lost | oldest before the death"
    " | doubled | out of order"
)


@dataclass(frozen=True, slots=True)
class Failover:
    """The figures of one run."""

    accepted: int
    lost: int
    oldest_lost_s: float
    doubled: int
    out_of_order: int

    @classmethod
    def of(cls, day: Day, died_at: float) -> "Failover":
        """Return the figures of a day on which all work is done."""
        oldest_s = max((died_at - day.accepted[update_id] for update_id in day.lost), default=0)
        return cls(len(day.accepted), len(day.lost), oldest_s, len(day.doubled), day.out_of_order)


async def fail_over(folder: Path, victim: str, lag_s: float, wait_replicas: int) -> Failover:
    """Run a Cluster under load, kill a primary, and wait until the rest is answered."""
    cluster = ThreeNodeCluster(folder)
    cluster.start()
    try:
        client = await RedisClient.open(cluster.url, max_connections=PEOPLE)
        times = TurnTimes(int(LEASE_S * 1000), 0, 0)
        options = MemoryOptions(86_400, 50, 1_000_000, times, wait_replicas=wait_replicas)
        memory = Memory(client, 42, await TokenCounter.load(), None, options)
        day, stopping = Day(), asyncio.Event()
        working = asyncio.create_task(work(memory, day, stopping))
        updates, talking = count(1), asyncio.Event()
        people = [
            asyncio.create_task(_talk(memory, day, n, updates, talking)) for n in range(PEOPLE)
        ]
        await asyncio.sleep(BEFORE_S)
        primary, replica = cluster.pair(primary_of_victim(victim, memory.keys))
        died_at = await _kill(primary, replica, lag_s)
        await asyncio.sleep(AFTER_S)
        await asyncio.to_thread(primary.start)  # back, as the replica of its replica
        await asyncio.sleep(AFTER_S)
        talking.set()
        await asyncio.gather(*people)
        await _wait_until_quiet(day)
        stopping.set()
        await working
        await client.close()
        return Failover.of(day, died_at)
    finally:
        cluster.stop()


async def _talk(
    memory: Memory, day: Day, number: int, updates: "count[int]", ended: asyncio.Event
) -> None:
    while not ended.is_set():
        await accept(memory, day, next(updates), Scope.of_chat(number + 1))


async def _kill(primary: ValkeyServer, replica: ValkeyServer, lag_s: float) -> float:
    if lag_s:
        replica.pause()
        await asyncio.sleep(lag_s)
    primary.kill()
    died_at = time.monotonic()
    if lag_s:
        replica.resume()
    return died_at


async def _wait_until_quiet(day: Day) -> None:
    """Return when nothing has been answered for `QUIET_S`; the rest is lost."""
    answered = -1
    while len(day.sent) > answered:
        answered = len(day.sent)
        await asyncio.sleep(QUIET_S)


async def main() -> None:
    """Print a line for each victim and lag, without and with waiting for replicas."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    sys.stdout.write(HEADER + "\n")
    for victim, lag_s, wait_replicas in product(VICTIMS, LAGS_S, (0, 1)):
        with tempfile.TemporaryDirectory() as folder:
            seen = await fail_over(Path(folder), victim, lag_s, wait_replicas)
        oldest = f"{seen.oldest_lost_s:.2f} s" if seen.lost else "-"
        columns = (
            *(victim, f"{lag_s:g} s", wait_replicas, seen.accepted, seen.lost, oldest),
            *(seen.doubled, seen.out_of_order),
        )
        sys.stdout.write(" | ".join(map(str, columns)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
