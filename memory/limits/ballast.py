"""A block of memory kept for the day when writes are refused: freed, it lets what runs finish.

While it is gone intake has to be closed, or new messages would use it up.
"""

from memory.store.store import Store

_SHARE = 50
_LEAST_BYTES = 2**16
_MAX_BYTES = 2**22


class Ballast:
    """The reserve as this process has last seen it; `is_spent` says that intake is closed."""

    def __init__(self, store: Store) -> None:
        self._client = store.client
        self._key = store.keys.ballast
        self._spend = store.scripts["release_ballast"]
        self.is_spent = False
        self.is_laid = False

    async def look(self) -> None:
        """See what other processes have done."""
        length = await self._client.call("STRLEN", self._key)
        self._seen(length)

    async def spend(self) -> None:
        """Free it, if it was laid: writes are refused."""
        self._seen(await self._spend([self._key]))

    async def lay(self, plan_bytes: int) -> None:
        """Put it back: there is room again."""
        await self._client.call("SET", self._key, bytes(reserve_bytes(plan_bytes)))
        self.is_laid, self.is_spent = True, False

    def _seen(self, length: int) -> None:
        self.is_laid, self.is_spent = length > 1, length == 1


def reserve_bytes(plan_bytes: int) -> int:
    """Return how large the reserve of a plan is."""
    return min(max(plan_bytes // _SHARE, _LEAST_BYTES), _MAX_BYTES)
