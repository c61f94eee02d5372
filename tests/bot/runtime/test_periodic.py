"""A step that fails is repeated, and the log names it."""

import asyncio
import time

import pytest
from structlog.testing import capture_logs

from bot.runtime.maintenance import repeat, watch_clock
from memory.store import client
from memory.store.client import RedisClient
from memory.store.errors import StoreUnavailable


async def test_a_failed_step_is_repeated() -> None:
    seen = asyncio.Event()
    errors = [StoreUnavailable("gone"), RuntimeError("a bug")]

    async def step() -> None:
        if errors:
            raise errors.pop(0)
        seen.set()

    with capture_logs() as logs:
        repeating = asyncio.create_task(repeat(step, "models", 0))
        await asyncio.wait_for(seen.wait(), 10)
        repeating.cancel()
        with pytest.raises(asyncio.CancelledError):
            await repeating
    assert [(line["event"], line["step"]) for line in logs] == [
        ("periodic step postponed", "models"),
        ("periodic step failed", "models"),
    ]


async def test_a_step_that_redis_failed_does_not_wait_for_its_next_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bot.runtime.maintenance._POSTPONED_S", 0.01)
    seen = asyncio.Event()
    errors = [StoreUnavailable("gone")]

    async def step() -> None:
        if errors:
            raise errors.pop()
        seen.set()

    repeating = asyncio.create_task(repeat(step, "jobs", 600))
    await asyncio.wait_for(seen.wait(), 10)
    repeating.cancel()


async def test_the_log_warns_of_a_clock_that_differs_from_that_of_redis(
    store: RedisClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with capture_logs() as logs:
        await watch_clock(store)
        assert logs == []
        monkeypatch.setattr(client, "time", lambda: time.time() + 300)
        await watch_clock(store)
    assert [(line["event"], line["redis_ahead_s"]) for line in logs] == [
        ("clock differs from Redis", -300)
    ]
