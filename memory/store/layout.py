"""Checks at the start that this version can read what is stored.

Releases of one layout may run beside each other (`memory/queue/stored_version.py`). A change that
they could not survive makes a new layout: its release brings what the one before stored over to it
here, once, before anything is read, and reads older forms nowhere else. What b14a1af (23 November
2026) stored has this layout already.
"""

from memory.store.client import RedisClient
from memory.store.errors import StoreRefused
from memory.store.keys import Keys
from memory.store.scope_index import count_scopes

LAYOUT = 2
"""The layout that this version reads and writes."""


class OtherLayout(StoreRefused):
    """Raised at the start if a version has stored data here that this one cannot read."""


async def take_layout(client: RedisClient, keys: Keys) -> None:
    """Do as `check_layout`, and give an empty store our layout."""
    if await check_layout(client, keys):
        await client.call("SET", keys.layout, LAYOUT)


async def check_layout(client: RedisClient, keys: Keys) -> bool:
    """Return whether the store is empty, false if it has our layout.

    Raise `OtherLayout` or `StoreError`.
    """
    stored = int(await client.call("GET", keys.layout) or 0)
    if stored > LAYOUT:
        raise OtherLayout(
            f"the data has layout {stored}, and this version reads layout {LAYOUT}: "
            "start the version that wrote it, or a newer one"
        )
    if stored == LAYOUT:
        return False
    if stored or await count_scopes(client, keys):
        raise OtherLayout(
            f"the data has layout {stored or 1}, and this version reads layout {LAYOUT}: start "
            "a version of 23 November 2026 first, which changes it"
        )
    return True
