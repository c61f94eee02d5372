"""A time of day that a benchmark sets, so that months pass in a minute.

Only the product's time of day is simulated. Timeouts and latencies use the loop's own clock, and
the Redis server keeps its own time.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Final

BEGAN: Final = 1_767_603_600.0
"""5 January 2026, 09:00 UTC."""


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


@contextmanager
def simulated(clock: SimulatedClock) -> Iterator[None]:
    """Inside the block, let every module of the product read `clock`."""
    real = time.time
    modules: list[ModuleType] = [time, *(m for m in _product() if vars(m).get("time") is real)]
    for module in modules:
        vars(module)["time"] = clock
    try:
        yield
    finally:
        for module in modules:
            vars(module)["time"] = real


def _product() -> list[ModuleType]:
    return [m for name, m in sys.modules.items() if name.startswith(("bot.", "memory."))]
