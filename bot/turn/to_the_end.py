"""Lets work end that must not be left half done when a turn is cancelled."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def to_the_end(work: Awaitable[T]) -> T:
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
        raise
