"""A memory without embeddings on a real store, for tests that look into it from outside."""

from memory.memory import Memory, MemoryOptions
from memory.protocol.turns import TurnTimes
from memory.redis_client import RedisClient
from memory.tokens import TokenCounter

OPTIONS = MemoryOptions(ttl_s=86_400, tail=50, cache_bytes=10**6, times=TurnTimes())


async def bare_memory(store: RedisClient) -> Memory:
    return Memory(store, 42, await TokenCounter.load(), None, OPTIONS)
