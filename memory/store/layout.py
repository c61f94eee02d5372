"""Checks at the start that this version can read what is stored; lists all scopes of a bot.

Releases of one layout may run beside each other (`memory/queue/stored_version.py`). A change that
they could not survive makes a new layout: its release brings what the one before stored over to it
here, once, before anything is read, and reads older forms nowhere else. What b14a1af (23 November
2026) stored has this layout already.
"""

from collections.abc import AsyncIterator, Sequence

from memory.store.client import RedisClient
from memory.store.errors import StoreRefused
from memory.store.keys import Keys, Scope

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


_PAGE = 100


async def count_scopes(client: RedisClient, keys: Keys) -> int:
    """Return how many scopes the indexes name."""
    indexes = (*keys.conversations, *keys.scopes)
    return sum(await client.pipeline([("ZCARD", index) for index in indexes]))


async def pages_of_scopes(
    client: RedisClient, keys: Keys, shared: Sequence[Scope]
) -> AsyncIterator[Sequence[Scope]]:
    """Give all scopes that the indexes name, in pages, then the `shared` ones.

    A scope may be given twice.
    """
    cursors = dict.fromkeys((*keys.conversations, *keys.scopes), 0)
    while cursors:
        asked = [("ZSCAN", index, cursor, "COUNT", _PAGE) for index, cursor in cursors.items()]
        for index, (cursor, found) in zip(
            tuple(cursors), await client.pipeline(asked), strict=True
        ):
            if found:
                yield [Scope(member.decode()) for member, _ in found]
            cursors[index] = int(cursor)
            if not cursors[index]:
                del cursors[index]
    if shared:
        yield shared
