"""The time and the secrets that the product gets while it is simulated."""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from random import Random

from bot.runtime import maintenance
from bot.turn import deliver
from memory.erasure import jobs
from memory.learning import learner
from memory.queue import ready_queue as sweep
from memory.queue import turn_store
from memory.store import keys
from memory.store.keys import Keys
from tests.lab.simulated_time import replaced
from tests.lab.simulator.loop import BEGAN, VirtualLoop


class Time:
    """The time of day and the secrets of the schedule that runs."""

    def __init__(self) -> None:
        self._loop: VirtualLoop | None = None
        self._random = Random(0)

    def follow(self, loop: VirtualLoop, seed: int) -> None:
        """Use the time of this loop from now on, and secrets drawn from the seed."""
        self._loop, self._random = loop, Random(seed)

    def now(self) -> float:
        """Replace `time.time`."""
        return BEGAN + (self._loop.now if self._loop else 0.0)

    def token(self, size: int = 16) -> str:
        """Replace `secrets.token_hex` and `secrets.token_urlsafe`."""
        return f"{self._random.getrandbits(size * 8):0{size * 2}x}"


@contextmanager
def simulated() -> Iterator[Time]:
    """Let every module of the product read a simulated time while the block lasts."""
    simulation = Time()
    replacements: list[tuple[str, object, object]] = [
        ("time", time.time, simulation.now),
        ("token_hex", secrets.token_hex, simulation.token),
        ("token_urlsafe", secrets.token_urlsafe, simulation.token),
        # Leases last a tenth of real ones, so other waiting times are shortened too. Periodic
        # checks are shortened less, because most of them find nothing.
        ("_LEASE_MS", jobs._LEASE_MS, 3_000),
        ("_JOB_IDLE_MS", maintenance._JOB_IDLE_MS, 6_000),
        ("MAX_FLOOD_WAIT_S", deliver.MAX_FLOOD_WAIT_S, 2),
        ("_PARK_UNREACHABLE_S", deliver._PARK_UNREACHABLE_S, 3),
        ("_LEASE_MS", learner._LEASE_MS, 2_000),
        ("_BUSY_AGAIN_S", learner._BUSY_AGAIN_S, 1),
        ("_REFUSED_AGAIN_S", learner._REFUSED_AGAIN_S, 0.5),
        ("LEARN_LATE_S", turn_store.LEARN_LATE_S, 3),
        ("_LEARN_AGAIN_S", sweep._LEARN_AGAIN_S, 3),
        ("_DUE_EVERY_S", maintenance._DUE_EVERY_S, 3.0),
        ("_JOBS_EVERY_S", maintenance._JOBS_EVERY_S, 3.0),
        ("_LEARN_EVERY_S", maintenance._LEARN_EVERY_S, 5.0),
        # For speed: a sweep reads one shard, and names of keys are built once.
        ("SHARDS", keys.SHARDS, 1),
        ("scope", Keys.scope, cache(Keys.scope)),
    ]
    with replaced(replacements, Keys):
        yield simulation
