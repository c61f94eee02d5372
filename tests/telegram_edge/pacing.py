"""What the tests of pacing share: measures of chats on any client."""

import asyncio

from memory.keys import Keys
from memory.protocol.paces import Paces
from memory.protocol.scripts import Scripts
from memory.protocol.store import Store
from memory.redis_client import RedisClient

KEYS = Keys(42)


def paces_of(client: RedisClient) -> Paces:
    """Return the measures that a bot keeps there."""
    return Paces(Store(client, KEYS, Scripts(client), asyncio.Event(), ttl_s=3600))
