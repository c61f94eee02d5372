"""Measures whether memory or open files grow over a long time at a moderate rate."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus

from tests.lab.figures import second_half, slope_an_hour
from tests.lab.fleet import Fleet, fleet
from tests.lab.meters import open_files
from tests.lab.people import TEXTS, arrivals, post_on_time

MESSAGES_A_SECOND = 8
PEOPLE = 40
MESSAGES_EACH = 40
"""After so many messages another person takes over, so that histories do not grow."""

WORKERS = 2
CACHE_MB = 4
"""So small that the cache is full long before the first half is over."""

_EVERY_S = 10


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample: resident memory in MB, open files, messages `stored` in Redis and their bytes."""

    at: float
    resident_mb: dict[str, float]
    open_files: dict[str, int]
    stored: int
    redis_bytes: int

    @classmethod
    async def of(cls, running: Fleet, empty: int) -> "Sample":
        """Take a sample; `empty` is the memory of Redis before the first message."""
        used = int((await running.redis.info("memory"))["used_memory"])
        return cls(
            at=time.monotonic(),
            resident_mb={name: bot.resident_mb for name, bot in running.bots.items()},
            open_files={name: open_files(bot.pid) for name, bot in running.bots.items()},
            stored=2 * running.telegram.sent,
            redis_bytes=used - empty,
        )

    @property
    def bytes_a_message(self) -> float:
        """The bytes in Redis for each message."""
        return self.redis_bytes / max(1, self.stored)


async def soak(minutes: float) -> dict[str, object]:
    """Return how memory and open files developed."""
    times = arrivals(MESSAGES_A_SECOND, 60 * minutes)
    samples: list[Sample] = []
    async with fleet(workers=WORKERS, CACHE_MB=str(CACHE_MB)) as running:
        assert running.posting
        telegram = running.telegram
        empty = int((await running.redis.info("memory"))["used_memory"])
        updates = [telegram.said(_person(at), TEXTS[at % len(TEXTS)]) for at in range(len(times))]
        async with _sampling(running, empty, samples):
            answers = await post_on_time(running.posting, updates, times)
    return {
        "minutes": minutes,
        "messages": len(updates),
        "refused": sum(answer.status != HTTPStatus.OK for _, answer in answers),
        "answers": telegram.sent,
        **_figures(samples),
    }


def _person(at: int) -> int:
    """Return the person who writes a message; people replace each other one by one."""
    turn, position = divmod(at, PEOPLE)
    generation = (turn + position) // MESSAGES_EACH
    return 20_000 + PEOPLE * generation + position


@asynccontextmanager
async def _sampling(running: Fleet, empty: int, samples: list[Sample]) -> AsyncIterator[None]:
    """Take samples inside the block."""

    async def sample() -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            samples.append(await Sample.of(running, empty))
            sys.stderr.write(f"{samples[-1]}\n")

    task = asyncio.create_task(sample())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _figures(samples: Sequence[Sample]) -> dict[str, object]:
    """Return the first, middle and last values, and slopes of the second half."""
    late = second_half(samples)
    three, times = (samples[0], late[0], late[-1]), [sample.at for sample in late]
    return {
        "processes": {
            name: {
                "resident_mb": [sample.resident_mb[name] for sample in three],
                "mb_an_hour": round(slope_an_hour(times, [s.resident_mb[name] for s in late]), 1),
                "open_files": [sample.open_files[name] for sample in three],
            }
            for name in samples[0].resident_mb
        },
        "redis_bytes_a_message": [round(sample.bytes_a_message) for sample in three],
    }
