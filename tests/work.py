"""Work compared with other work of the same run: calls are counted, CPU times are set in relation.

No test measures seconds, because other processes use the same cores.
"""

import asyncio
import gc
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager

QUADRATIC = 64.0
"""How many times longer 16 times the length may take; linear: 16, quadratic: 256 times."""
_MIN_ROUNDS, _MAX_ROUNDS = 3, 25

Work = Callable[[], object]


def calls(work: Work) -> int:
    """Return how many functions the work calls, those of C included."""
    count = 0

    def note(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


async def longest_stretch(work: Coroutine[object, object, object]) -> float:
    """Return the largest part of the work's calls that are made before other tasks go on."""
    most, count = await stretch(work)
    return most / count


async def stretch(work: Coroutine[object, object, object]) -> tuple[int, int]:
    """Return the most calls that the work makes before other tasks go on, and all of its calls.

    Those of other threads do not count.
    """
    count, most = 0, 0

    def note(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    task = asyncio.create_task(work)
    with _without_garbage_collector():
        sys.setprofile(note)
        try:
            while not task.done():
                before = count
                await asyncio.sleep(0)
                most = max(most, count - before)
        finally:
            sys.setprofile(None)
    await task
    return most, count


@contextmanager
def _without_garbage_collector() -> Iterator[None]:
    """Stop the collector, which runs at any time and may call functions of other tests."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def ratio(larger: Work, smaller: Work, expected: float, rounds: int = _MIN_ROUNDS) -> float:
    """Return how many times more CPU time the larger work takes.

    The smallest times are compared, because other processes only add time. A ratio above `expected`
    is measured again and again before it is believed.
    """
    large: list[float] = []
    small: list[float] = []
    while len(large) < _MAX_ROUNDS:
        small.append(seconds(smaller))
        large.append(seconds(larger))
        if len(large) >= rounds and min(large) <= expected * min(small):
            break
    return min(large) / min(small)


def seconds(work: Work) -> float:
    """Return the CPU time of the work, without collections of garbage."""
    with _without_garbage_collector():
        began = time.process_time()
        work()
        return time.process_time() - began
