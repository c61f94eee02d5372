"""The watchdog of the event loop names code, and no text of people."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from bot.runtime.process import MAX_BLOCKED_S, LoopWatchdog
from bot.telegram.updates import from_bytes, to_bytes
from memory.store.tasks import end_tasks
from tests.bot.telegram import raw


def test_the_trace_of_an_update_is_stored_only_if_there_is_one() -> None:
    message = raw.inbound(raw.message("hello"))
    assert from_bytes(to_bytes(message)).trace == ""
    assert to_bytes(message).endswith(b'"hello"]')


@pytest.fixture
async def watchdog() -> AsyncIterator[asyncio.Task[None]]:
    running = asyncio.create_task(LoopWatchdog().run())
    await asyncio.sleep(0)
    yield running
    await end_tasks([running])


def block_the_loop(secret: str) -> int:
    until = time.thread_time() + 0.4
    while time.thread_time() < until:
        secret = secret[::-1]
    return len(secret)


@pytest.mark.usefixtures("watchdog")
async def test_the_blocking_code_is_named_without_its_variables() -> None:
    with capture_logs() as logs:
        block_the_loop("the text of a person")
        await asyncio.sleep(MAX_BLOCKED_S)  # the next beat
    line = next(line for line in logs if "block_the_loop" in line.get("frames", ""))
    assert (line["event"], line["log_level"]) == ("event loop blocked", "warning")
    assert line["cpu_ms"] >= 400
    assert line["frames"].startswith("runtime/test_monitoring.py:block_the_loop < ")
    assert "text of a person" not in str(line)


async def test_the_watchdog_thread_ends_with_its_task(watchdog: asyncio.Task[None]) -> None:
    await end_tasks([watchdog])
    assert "loop watchdog" not in {thread.name for thread in threading.enumerate()}
