"""A memory with short leases on a real, empty Valkey."""

from collections.abc import AsyncIterator

import pytest

from memory.memory import Memory, MemoryOptions
from memory.queue.turn_store import TurnTimes
from memory.search.embeddings import Embedder
from memory.store.client import RedisClient
from memory.text.tokens import TokenCounter
from tests.memory.clients import InterruptedClient
from tests.valkey import ValkeyServer

OPTIONS = MemoryOptions(
    ttl_s=86_400,
    tail=50,
    cache_bytes=1_000_000,
    times=TurnTimes(lease_ms=30_000, coalesce_ms=0, max_coalesce_ms=0),
)
TOKENS = TokenCounter()
"""It has no state, and counts with the one vocabulary of this process."""


def memory_of(
    client: RedisClient,
    embedder: Embedder | None = None,
    options: MemoryOptions = OPTIONS,
    *,
    bot: int = 42,
) -> Memory:
    """Return the memory of one more process of a bot."""
    return Memory(client, bot, TOKENS, embedder, options)


ON_A_SERVER = pytest.mark.parametrize("valkey", ["valkey_server"], indirect=True)
"""Marks what is not promised of a Cluster, such as how many round trips a pipeline takes."""


@pytest.fixture
def valkey(request: pytest.FixtureRequest) -> str:
    """Give the address of an empty Cluster.

    It refuses what a server refuses, and besides a command or a script with keys of several slots.
    The store is tested on both; the black-box tests run on a server, also on a full one.
    """
    server: ValkeyServer = request.getfixturevalue(getattr(request, "param", "cluster_server"))
    server.ask("FLUSHALL")
    return server.url


@pytest.fixture
async def interrupted(valkey: str) -> AsyncIterator[InterruptedClient]:
    client = await InterruptedClient.open(valkey)
    yield client
    await client.close()
