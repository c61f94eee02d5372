"""Processes report to the inspector while somebody watches, and cost nothing otherwise."""

import asyncio
from contextlib import suppress

import pytest

from bot.features.inspector.turn_log import MAX_REPORT_BYTES, WATCHED, ProcessReports
from memory.memory import Memory
from memory.store.client import RedisClient
from memory.text.tokens import TokenCounter
from tests.memory.conftest import OPTIONS


@pytest.fixture
def other(store: RedisClient, tokens: TokenCounter) -> Memory:
    """Give a second process on the same Redis."""
    return Memory(store, 42, tokens, None, OPTIONS)


def reports_of(memory: Memory) -> ProcessReports:
    return ProcessReports(memory.store, memory.scopes.noted[WATCHED])


async def test_every_process_reports_once_somebody_watches(memory: Memory, other: Memory) -> None:
    written = asyncio.Event()

    def report() -> bytes:
        written.set()
        return b"of the other"

    writing = asyncio.create_task(reports_of(other).keep_writing(report))
    await other.scopes.drop_erased()
    assert await reports_of(memory).read() == []
    await reports_of(memory).watch()
    await other.scopes.drop_erased()
    await written.wait()
    while not (read := await reports_of(memory).read()):
        pass
    assert read == [b"of the other"]
    writing.cancel()
    with suppress(asyncio.CancelledError):
        await writing


async def test_without_a_watcher_a_process_sends_no_command(memory: Memory, other: Memory) -> None:
    writing = asyncio.create_task(reports_of(other).keep_writing(lambda: b"never"))
    before = memory.client.round_trips
    for _ in range(5):
        await asyncio.sleep(0)
    assert memory.client.round_trips == before
    writing.cancel()
    with suppress(asyncio.CancelledError):
        await writing


async def test_a_process_that_died_disappears(memory: Memory, other: Memory) -> None:
    reports, others = reports_of(memory), reports_of(other)
    await reports.write(b"lives")
    await others.write(b"died")
    assert sorted(await reports.read()) == [b"died", b"lives"]
    await memory.client.call("DEL", others.key(others.process))
    assert await reports.read() == [b"lives"]


async def test_a_report_expires_and_has_a_bound(memory: Memory) -> None:
    reports = reports_of(memory)
    await reports.write(b"short")
    key = reports.key(reports.process)
    assert 0 < await memory.client.call("PTTL", key) <= 6_000
    await reports.write(bytes(MAX_REPORT_BYTES + 1))
    assert await reports.read() == [b"short"]
