"""A time of day that a benchmark moves, so that months pass in a minute.

Only what the product asks for as the time of day is simulated: time limits and latencies run on the
loop's own clock, and the server keeps its own time.
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
    """Says what time it is, in Unix seconds; only ever moves forward."""

    def __init__(self, now: float = BEGAN) -> None:
        self.now = now

    def __call__(self) -> float:
        """Stand in for `time.time`."""
        return self.now

    def until(self, at: float) -> None:
        """Let time pass."""
        self.now = max(self.now, at)


@contextmanager
def simulated(clock: SimulatedClock) -> Iterator[None]:
    """Let every module of the product read `clock` while the block lasts."""
    real = time.time
    places: list[ModuleType] = [time, *(m for m in _product() if vars(m).get("time") is real)]
    for place in places:
        vars(place)["time"] = clock
    try:
        yield
    finally:
        for place in places:
            vars(place)["time"] = real


def _product() -> list[ModuleType]:
    return [m for name, m in sys.modules.items() if name.startswith(("bot.", "memory."))]
