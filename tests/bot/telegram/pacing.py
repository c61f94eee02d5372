"""What the tests of pacing share: measures of chats on any client."""

import asyncio

from memory.limits.send_rate import SendRates
from memory.store.client import RedisClient
from memory.store.keys import Keys
from memory.store.scripts import Scripts
from memory.store.store import Store

KEYS = Keys(42)


def paces_of(client: RedisClient) -> SendRates:
    """Return the measures that a bot keeps there."""
    return SendRates(Store(client, KEYS, Scripts(client), asyncio.Event(), ttl_s=3600))
