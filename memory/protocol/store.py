"""What every room needs to work on one bot's Redis, as one value."""

import asyncio
from dataclasses import dataclass

from memory.keys import Keys
from memory.protocol.scripts import Scripts
from memory.redis_client import RedisClient


@dataclass(frozen=True, slots=True)
class Store:
    """A client, the names of a bot's keys, its scripts, and how long what is silent is kept.

    `erased` is set whenever this process has erased something, for whoever cleans up behind it.
    """

    client: RedisClient
    keys: Keys
    scripts: Scripts
    erased: asyncio.Event
    ttl_s: int
