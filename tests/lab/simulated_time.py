"""A time of day that a benchmark sets, so that months pass in a minute.

Only the product's time of day is simulated. Timeouts and latencies use the loop's own clock, and
the Redis server keeps its own time.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Final

BEGAN: Final = 1_767_603_600.0  # 5 January 2026, 09:00 UTC


class SimulatedClock:
    """Returns the time in Unix seconds; it only moves forward."""

    def __init__(self, now: float = BEGAN) -> None:
        self.now = now

    def __call__(self) -> float:
        """Replace `time.time`."""
        return self.now

    def until(self, at: float) -> None:
        """Move the time forward to `at`, if that is later."""
        self.now = max(self.now, at)


def simulated(clock: SimulatedClock) -> AbstractContextManager[None]:
    """Inside the block, let every module of the product read `clock`."""
    return replaced([("time", time.time, clock)])


@contextmanager
def replaced(replacements: Sequence[tuple[str, object, object]], *others: object) -> Iterator[None]:
    """Replace each (name, value) in `time`, in all modules of the product and in `others`."""
    product = [m for name, m in sys.modules.items() if name.startswith(("bot.", "memory."))]
    before: list[tuple[object, str, object]] = []
    for owner in (time, *others, *product):
        for name, real, replacement in replacements:
            if vars(owner).get(name) is real:
                before.append((owner, name, real))
                setattr(owner, name, replacement)
    try:
        yield
    finally:
        for owner, name, real in before:
            setattr(owner, name, real)
