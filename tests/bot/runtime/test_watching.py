"""A look that fails does not end the watch, and the log names what could not be watched."""

import asyncio

import pytest
from structlog.testing import capture_logs

from bot.runtime.watching import repeat
from memory.store.errors import StoreUnavailable


async def test_a_look_that_fails_is_followed_by_the_next() -> None:
    seen = asyncio.Event()
    troubles = [StoreUnavailable("gone"), RuntimeError("a bug")]

    async def look() -> None:
        if troubles:
            raise troubles.pop(0)
        seen.set()

    with capture_logs() as logs:
        watching = asyncio.create_task(repeat(look, "models", 0))
        await asyncio.wait_for(seen.wait(), 10)
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching
    assert [(line["event"], line["what"]) for line in logs] == [
        ("not watched", "models"),
        ("watch failed", "models"),
    ]
