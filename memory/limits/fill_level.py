"""How full Redis is, and the ballast that is freed when it is full."""

from dataclasses import dataclass

from memory.store.client import RedisClient
from memory.store.store import Store

_BALLAST_SHARE = 50
_MIN_BALLAST_BYTES = 2**16
_MAX_BALLAST_BYTES = 2**22


@dataclass(frozen=True, slots=True)
class FillLevel:
    """Bytes used and bytes available; a `limit` of 0 means that it is unknown."""

    used: int
    limit: int

    @property
    def share(self) -> float:
        """Return the used share, 0 if the limit is unknown; above 1 Redis refuses writes."""
        return self.used / self.limit if self.limit else 0.0


async def read_fill_level(client: RedisClient, default_limit: int) -> FillLevel:
    """Ask the server, in one round trip; of a Cluster one node stands for all.

    `default_limit` counts if the server does not tell its limit.
    """
    info = await client.info("memory")
    limit = int(info.get("maxmemory") or 0) or default_limit
    return FillLevel(int(info.get("used_memory") or 0), limit)


class Ballast:
    """A key that takes up memory and is freed when Redis is full, so that running turns can finish.

    `is_allocated` and `is_released` are what this process has seen last. While the ballast is
    released, intake must be closed, because new messages would use up the freed memory.
    """

    def __init__(self, store: Store) -> None:
        self._client = store.client
        self._key = store.keys.ballast
        self._release = store.scripts["release_ballast"]
        self.is_released = False
        self.is_allocated = False

    async def refresh(self) -> None:
        """See what other processes have done."""
        self._seen(await self._client.call("STRLEN", self._key))

    async def release(self) -> None:
        """Free the ballast; without one nothing happens."""
        self._seen(await self._release([self._key]))

    async def allocate(self, limit: int) -> None:
        """Take up memory again, for a Redis of `limit` bytes."""
        await self._client.call("SET", self._key, bytes(ballast_bytes(limit)))
        self.is_allocated, self.is_released = True, False

    def _seen(self, length: int) -> None:
        self.is_allocated, self.is_released = length > 1, length == 1


def ballast_bytes(limit: int) -> int:
    """Return the size of the ballast for a Redis of `limit` bytes."""
    return min(max(limit // _BALLAST_SHARE, _MIN_BALLAST_BYTES), _MAX_BALLAST_BYTES)
