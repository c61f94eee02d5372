"""Two stores: one that is backed up, and an empty one to restore into."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from memory.memory import Memory
from memory.store.client import RedisClient
from memory.text.tokens import TokenCounter
from tests.memory.conftest import OPTIONS, valkey
from tests.memory.words_embedder import WordsEmbedder
from tests.valkey import ValkeyServer

__all__ = ["valkey"]


@pytest.fixture
def memory(store: RedisClient, tokens: TokenCounter) -> Memory:
    return Memory(store, 42, tokens, WordsEmbedder(), OPTIONS)


@pytest.fixture(scope="session")
def other_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyServer]:
    server = ValkeyServer(tmp_path_factory.mktemp("other"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def empty(other_server: ValkeyServer, tokens: TokenCounter) -> AsyncIterator[Memory]:
    """Give the memory of the same bot on another, empty server."""
    other_server.ask("FLUSHALL")
    client = await RedisClient.open(other_server.url)
    yield Memory(client, 42, tokens, WordsEmbedder(), OPTIONS)
    await client.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "bot.backup"
