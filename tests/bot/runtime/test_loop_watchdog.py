"""The watchdog of the event loop: it names the place that holds the loop, and nothing else."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from bot.runtime.loop_watchdog import MAX_HELD_S, LoopWatchdog


@pytest.fixture
async def watchdog() -> AsyncIterator[asyncio.Task[None]]:
    running = asyncio.create_task(LoopWatchdog().run())
    await asyncio.sleep(0)
    yield running
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def hold_the_loop(secret: str) -> int:
    until = time.monotonic() + 0.4
    while time.monotonic() < until:
        secret = secret[::-1]
    return len(secret)


@pytest.mark.usefixtures("watchdog")
async def test_who_holds_the_loop_is_named_without_what_it_holds() -> None:
    with capture_logs() as logs:
        hold_the_loop("the words of a person")
        await asyncio.sleep(MAX_HELD_S)  # the next beat

    (line,) = [line for line in logs if line["event"] == "event loop held"]
    assert line["log_level"] == "warning"
    assert 200 < line["ms"] < 5000
    assert line["place"].startswith("runtime/test_loop_watchdog.py:hold_the_loop < ")
    assert "words of a person" not in str(line)


async def test_it_ends_with_its_task(watchdog: asyncio.Task[None]) -> None:
    watchdog.cancel()
    await asyncio.gather(watchdog, return_exceptions=True)

    assert "loop watchdog" not in {thread.name for thread in threading.enumerate()}
