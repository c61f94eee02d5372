"""A memory on a real, empty Valkey."""

import pytest

from memory.memory import Memory, MemoryOptions
from memory.notebook.notebooks import Notebooks
from memory.protocol.turns import TurnTimes
from memory.redis_client import RedisClient
from memory.tokens import TokenCounter

OPTIONS = MemoryOptions(ttl_s=86_400, tail=50, cache_bytes=1_000_000, times=TurnTimes())


@pytest.fixture
def memory(store: RedisClient, tokens: TokenCounter) -> Memory:
    return Memory(store, 42, tokens, None, OPTIONS)


@pytest.fixture
def notebooks(memory: Memory) -> Notebooks:
    return memory.notebooks
