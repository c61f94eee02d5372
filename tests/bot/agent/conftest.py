"""A context on a real, empty store, also for tools that search the history."""

from collections.abc import Sequence

import numpy as np
import pytest

from memory.behaviors.context import AgentContext
from memory.memory import Memory, MemoryOptions
from memory.queue.turn_store import TurnTimes
from memory.search.embeddings import Vectors
from memory.store.client import RedisClient
from memory.text.tokens import TokenCounter
from tests.servers.word_vectors import DIMENSIONS, embed

NOON = 1_762_948_800.0  # Wednesday, 12 November 2025, 12:00 UTC
OPTIONS = MemoryOptions(ttl_s=86_400, tail=50, cache_bytes=10**6, times=TurnTimes())


class HashedWords:
    """Embeds texts so that texts with common words are similar."""

    fingerprint = "hashed-words"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return np.stack([embed(text, DIMENSIONS) for text in texts])


@pytest.fixture
def memory(store: RedisClient, tokens: TokenCounter) -> Memory:
    return Memory(store, 42, tokens, HashedWords(), OPTIONS)


@pytest.fixture
async def context(memory: Memory) -> AgentContext:
    return await AgentContext.get_or_create({"chat_id": 7}, memory.histories, now=NOON)
