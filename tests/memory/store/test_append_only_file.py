"""Erased data leaves the disk of the embedded server, even during a rewrite."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memory.store.client import RedisClient
from memory.store.embedded import EmbeddedValkey, keep_clean
from tests.stored import everything_on_disk

WORDS = b"My secret colour is ultramarine"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[RedisClient]:
    server = EmbeddedValkey(tmp_path)
    client = await RedisClient.open(server.start())
    yield client
    await client.close()
    server.stop()


@asynccontextmanager
async def cleaning(store: RedisClient, erased: asyncio.Event) -> AsyncIterator[None]:
    task = asyncio.create_task(keep_clean(store, erased))
    yield
    task.cancel()
    await asyncio.wait([task])


async def wait_until_clean(store: RedisClient, folder: Path) -> None:
    async with asyncio.timeout(60):
        while WORDS in everything_on_disk(folder):
            await store.ping()


async def test_erased_data_that_a_crash_left_on_disk_is_removed_at_the_next_start(
    store: RedisClient, tmp_path: Path
) -> None:
    await store.call("SET", "said", WORDS)
    await store.call("DEL", "said")
    assert WORDS in everything_on_disk(tmp_path)
    async with cleaning(store, asyncio.Event()):
        await wait_until_clean(store, tmp_path)


async def test_an_erasure_during_a_rewrite_is_followed_by_another_one(
    store: RedisClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.store.embedded._RETRY_S", 0.01)
    await store.call("CONFIG SET", "rdb-key-save-delay", 300_000)
    await store.call("SET", "kept", "so that a rewrite takes its time")
    erased = asyncio.Event()
    async with cleaning(store, erased):
        while (await store.info("persistence"))["aof_rewrite_in_progress"] == "0":
            pass
        await store.call("SET", "said", WORDS)
        await store.call("DEL", "said")
        erased.set()
        assert WORDS in everything_on_disk(tmp_path)
        await wait_until_clean(store, tmp_path)
