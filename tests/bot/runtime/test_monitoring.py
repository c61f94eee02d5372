"""The watchdog of the event loop names code, and no text of people."""

import asyncio
import resource
import sys
import threading
import time

import pytest
from structlog.testing import capture_logs

from bot.runtime.process import MAX_BLOCKED_S, GarbageWatch, run_loop, watch_loop
from bot.telegram.updates import from_bytes, to_bytes
from memory.store.tasks import end_tasks
from tests.bot.telegram import raw


def test_the_trace_of_an_update_is_stored_only_if_there_is_one() -> None:
    message = raw.inbound(raw.message("hello"))
    assert from_bytes(to_bytes(message)).trace == ""
    assert to_bytes(message).endswith(b'"hello"]')


def block_the_loop(secret: str) -> int:
    until = time.thread_time() + 0.5  # the watchdog may look a little later than it begins
    while time.thread_time() < until:
        secret = secret[::-1]
    return len(secret)


@pytest.mark.parametrize("in_thread", [False, True])
async def test_the_blocking_code_is_named_without_its_variables(*, in_thread: bool) -> None:
    """While the loop only waits, it has used no time of the CPU, whatever other threads do."""
    watching = asyncio.create_task(watch_loop(GarbageWatch()))
    await asyncio.sleep(0)
    with capture_logs() as logs:
        if in_thread:
            other = threading.Thread(target=block_the_loop, args=("the text of a person",))
            other.start()
            other.join()
        else:
            block_the_loop("the text of a person")
        for _ in range(100):
            if not logs:  # another thread writes it
                await asyncio.sleep(MAX_BLOCKED_S)
    line = logs[0]
    assert (line["event"], line["log_level"]) == ("event loop blocked", "warning")
    if in_thread:
        assert 2 * line["cpu_ms"] < line["ms"] or sys.platform != "linux"
    else:
        assert line["cpu_ms"] >= 400
        assert line["frames"].startswith("runtime/test_monitoring.py:block_the_loop < ")
    assert "text of a person" not in str(line)
    await end_tasks([watching])
    assert "loop watchdog" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel does not count for each thread")
def test_a_loop_that_waits_is_not_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread looks at it thirty times meanwhile."""
    looks, woken = threading.Semaphore(0), list[int]()
    monkeypatch.setattr(GarbageWatch, "is_due", lambda _: looks.release())

    async def main() -> None:
        watching = asyncio.create_task(watch_loop(GarbageWatch()))
        await asyncio.sleep(0)
        woken.append(-resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw)
        await asyncio.to_thread(lambda: [looks.acquire() for _ in range(30)])
        woken.append(resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw)
        await end_tasks([watching])

    run_loop(main())
    assert sum(woken) < 30  # a loop that is asked at each look is woken about seventy times
