"""A memory on a real, empty Valkey."""

import pytest

from memory.memory import Memory, MemoryOptions
from memory.queue.turn_store import TurnTimes
from memory.scopes.scopes import Scopes
from memory.store.client import RedisClient
from memory.text.tokens import TokenCounter

OPTIONS = MemoryOptions(ttl_s=86_400, tail=50, cache_bytes=1_000_000, times=TurnTimes())


@pytest.fixture
def memory(store: RedisClient, tokens: TokenCounter) -> Memory:
    return Memory(store, 42, tokens, None, OPTIONS)


@pytest.fixture
def scopes(memory: Memory) -> Scopes:
    return memory.scopes
