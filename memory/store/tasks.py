"""Lets work end that a cancellation must not leave half done, and ends tasks."""

import asyncio
from collections.abc import Awaitable, Iterable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")
_CANCEL_AGAIN_S = 4.0  # longer than the grace that a task gives to its own work, which is 2 s


async def shielded(work: Awaitable[T]) -> T:
    """Await work to its end and return what it returns; if this is cancelled meanwhile, raise then.

    A turn may be cancelled twice: when its lease is lost, and when its process has to stop.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait((task,))
        if not task.cancelled():
            task.exception()  # what it raises is dropped, and asyncio does not log it
        raise


async def in_turns(items: Iterable[T], at_once: int = 100) -> list[T]:
    """Return all items. After each `at_once` others go on: thousands would hold them up."""
    found = []
    for number, item in enumerate(items, start=1):
        found.append(item)
        if number % at_once == 0:
            await asyncio.sleep(0)
    return found


async def end_tasks(tasks: "Iterable[asyncio.Task[Any]]", grace_s: float = 0.0) -> None:
    """Let tasks end within `grace_s`, then cancel them until they have; what they raise is dropped.

    `wait_for` of Python 3.11 may lose a cancellation, and the SDKs send with it. So a task that has
    not ended after a pause is cancelled again. A task that ends in order takes less than the pause.
    """
    left = set(tasks)
    if left and grace_s:
        await asyncio.wait(left, timeout=grace_s)
    while left:
        for task in left:
            task.cancel()
        ended, left = await asyncio.wait(left, timeout=_CANCEL_AGAIN_S)
        await asyncio.gather(*ended, return_exceptions=True)
