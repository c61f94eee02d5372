"""Processes report to the inspector while somebody watches, and cost nothing otherwise."""

import asyncio
from contextlib import suppress

import pytest

from memory.limits.process_reports import MAX_REPORT_BYTES
from memory.memory import Memory
from memory.store.client import RedisClient
from memory.text.tokens import TokenCounter
from tests.memory.conftest import OPTIONS


@pytest.fixture
def other(small_store: RedisClient, tokens: TokenCounter) -> Memory:
    """Give a second process on the same Redis."""
    return Memory(small_store, 42, tokens, None, OPTIONS)


async def test_every_process_reports_once_somebody_watches(memory: Memory, other: Memory) -> None:
    written = asyncio.Event()

    def report() -> bytes:
        written.set()
        return b"of the other"

    writing = asyncio.create_task(other.reports.keep_writing(report))
    await other.drop_erased()
    assert await memory.reports.read() == []
    await memory.reports.watch()
    await other.drop_erased()
    await written.wait()
    while not (read := await memory.reports.read()):
        pass
    assert read == [b"of the other"]
    writing.cancel()
    with suppress(asyncio.CancelledError):
        await writing


async def test_without_a_watcher_a_process_sends_no_command(memory: Memory, other: Memory) -> None:
    writing = asyncio.create_task(other.reports.keep_writing(lambda: b"never"))
    before = memory.client.round_trips
    for _ in range(5):
        await asyncio.sleep(0)
    assert memory.client.round_trips == before
    writing.cancel()
    with suppress(asyncio.CancelledError):
        await writing


async def test_a_process_that_died_disappears(memory: Memory, other: Memory) -> None:
    await memory.reports.write(b"lives")
    await other.reports.write(b"died")
    assert sorted(await memory.reports.read()) == [b"died", b"lives"]
    await memory.client.call("DEL", memory.keys.report_of(other.reports.process))
    assert await memory.reports.read() == [b"lives"]


async def test_a_report_expires_and_has_a_bound(memory: Memory) -> None:
    await memory.reports.write(b"short")
    key = memory.keys.report_of(memory.reports.process)
    assert 0 < await memory.client.call("PTTL", key) <= 6_000
    await memory.reports.write(bytes(MAX_REPORT_BYTES + 1))
    assert await memory.reports.read() == [b"short"]
