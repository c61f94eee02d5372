"""A plain lease by name: one process at a time does a thing, and a dead one loses it."""

from secrets import token_hex

from memory.store.scripts import Scripts


class NamedLease:
    """One process's claim on a key; renew it well before `ttl_ms` is over."""

    def __init__(self, scripts: Scripts, key: str, ttl_ms: int) -> None:
        self._scripts = scripts
        self._key = key
        self._ttl_ms = ttl_ms
        self._token = token_hex(16)

    async def hold(self) -> bool:
        """Take or extend the lease; false while somebody else has it."""
        request = {"token": self._token, "ttl_ms": self._ttl_ms}
        return bool(await self._scripts["lease"]([self._key], request))

    async def release(self) -> None:
        """Give the lease back if it is ours."""
        await self._scripts["unlease"]([self._key], {"token": self._token})
