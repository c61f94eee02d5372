"""What every room needs to work on one bot's Redis, as one value."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass

from memory.store.client import RedisClient
from memory.store.errors import StoreError
from memory.store.keys import Keys, Scope
from memory.store.scripts import Scripts

_MAX_ERASED = 10_000
_ERASED_S = 60
"""How long it is known which scopes were erased; every process looks twice a second."""


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

    async def tell_erased(self, *scopes: Scope) -> None:
        """Tell every process that something of these scopes was erased (`Memory.drop_erased`).

        What a process holds in memory is never used after an erasure, so trouble with the store is
        no error here: it only stays there for longer.
        """
        self.erased.set()
        stream = (self.keys.erased, "MAXLEN", "~", _MAX_ERASED, "*")
        told = [("XADD", *stream, "c", scope.tag) for scope in scopes]
        with suppress(StoreError):
            await self.client.pipeline([*told, ("EXPIRE", self.keys.erased, _ERASED_S)])
