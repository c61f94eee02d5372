"""How full the Redis plan is. Asks the server; decides nothing."""

from dataclasses import dataclass

from memory.store.client import RedisClient


@dataclass(frozen=True, slots=True)
class FillLevel:
    """Bytes used and bytes there are; a `limit` of 0 is one that nobody tells."""

    used: int
    limit: int

    @property
    def share(self) -> float:
        """Return which part is used, 0 while the limit is unknown; above 1 writes are refused."""
        return self.used / self.limit if self.limit else 0.0


class Gauge:
    """Reads the filling; `told_bytes` is the plan's size where the server does not tell it."""

    def __init__(self, client: RedisClient, told_bytes: int) -> None:
        self._client = client
        self._told_bytes = told_bytes

    async def read(self) -> FillLevel:
        """Ask the server, in one round trip; of a Cluster one node stands for all."""
        info = await self._client.info("memory")
        limit = int(info.get("maxmemory") or 0) or self._told_bytes
        return FillLevel(int(info.get("used_memory") or 0), limit)
