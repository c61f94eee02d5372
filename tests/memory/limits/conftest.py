"""A memory on a Cluster of 8 MB, which refuses what a server of 8 MB refuses."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from memory.memory import Memory
from memory.queue.turn_store import TurnTimes
from memory.store.client import RedisClient
from tests.memory.conftest import OPTIONS, memory_of
from tests.memory.words_embedder import WordsEmbedder
from tests.valkey import OneNodeCluster, ValkeyServer

REDIS_BYTES = 8 * 2**20


@pytest.fixture(scope="package")
def _small_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyServer]:
    full = ("--maxmemory", str(REDIS_BYTES), "--maxmemory-policy", "noeviction")
    at_once = ("--lazyfree-lazy-user-del", "no")  # what is deleted is free at once
    with OneNodeCluster(tmp_path_factory.mktemp("small"), *full, *at_once) as server:
        yield server


@pytest.fixture
def small_server(_small_server: ValkeyServer) -> ValkeyServer:
    _small_server.ask("FLUSHALL")
    _small_server.ask("SCRIPT FLUSH")  # the scripts of earlier tests take memory, too
    _small_server.ask(f"CONFIG SET maxmemory {REDIS_BYTES}")
    return _small_server


@pytest.fixture
def valkey(small_server: ValkeyServer) -> str:
    return small_server.url


@pytest.fixture
def embedder() -> WordsEmbedder:
    return WordsEmbedder("words:512", 512)


@pytest.fixture
def memory(store: RedisClient, embedder: WordsEmbedder) -> Memory:
    times = TurnTimes(60_000, 0, 0)  # a Redis is filled up within a lease
    return memory_of(store, embedder, replace(OPTIONS, times=times))


_CHUNK = bytes(2**14)
_TOO_MUCH_BYTES = 2**15


async def fill(memory: Memory, share: float) -> None:
    """Fill Redis up to a share of its limit."""
    while (missing := share - (await memory.capacity.fill_level()).share) > 0:
        chunks = 16 if missing > 0.1 else 1
        await memory.client.call("RPUSH", "ballast", *[_CHUNK] * chunks)


async def fill_up(memory: Memory) -> None:
    """Use a little more than the limit, so that nothing can be written."""
    await fill(memory, 0.95)
    # The buffers of what we sent count, too. The server frees them within a second or two.
    while int((await memory.client.call("CLIENT INFO"))["tot-mem"]) > _TOO_MUCH_BYTES:
        pass
    used = (await memory.capacity.fill_level()).used
    await memory.client.call("CONFIG SET", "maxmemory", used - _TOO_MUCH_BYTES)
