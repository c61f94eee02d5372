"""News: whoever waits for something to become true is woken after every change.

It knows nothing of what changed.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Changes:
    """Counts changes; `until` waits for them without polling."""

    def __init__(self) -> None:
        self.count = 0
        self._condition = asyncio.Condition()

    async def tell(self) -> None:
        """Say that something changed."""
        async with self._condition:
            self.count += 1
            self._condition.notify_all()

    async def until(self, found: Callable[[], T | None], timeout_s: float | None = None) -> T:
        """Return what `found` returns once that is true; it is asked now and after every change.

        Raises `TimeoutError` when that takes longer than `timeout_s`.
        """
        async with asyncio.timeout(timeout_s), self._condition:
            while not (value := found()):
                await self._condition.wait()
            return value
