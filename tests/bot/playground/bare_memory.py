"""A memory without embeddings on a real store, for tests that look into it from outside."""

from memory.memory import Memory, MemoryOptions
from memory.queue.turn_store import TurnTimes
from memory.store.client import RedisClient
from memory.text.tokens import TokenCounter

OPTIONS = MemoryOptions(ttl_s=86_400, tail=50, cache_bytes=10**6, times=TurnTimes())


async def bare_memory(store: RedisClient) -> Memory:
    return Memory(store, 42, await TokenCounter.load(), None, OPTIONS)
