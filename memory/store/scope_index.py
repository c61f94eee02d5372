"""Lists all scopes of a bot, page by page, from the indexes by last activity."""

from collections.abc import AsyncIterator, Sequence

from memory.store.client import RedisClient
from memory.store.keys import SHARDS, Keys, Scope

_PAGE = 100


async def count_scopes(client: RedisClient, keys: Keys) -> int:
    """Return how many scopes the indexes name."""
    return sum(await client.pipeline([("ZCARD", index) for index in _indexes(keys)]))


async def pages_of_scopes(
    client: RedisClient, keys: Keys, shared: Sequence[Scope]
) -> AsyncIterator[Sequence[Scope]]:
    """Give all scopes that the indexes name, in pages, then the `shared` ones.

    A scope may be given twice.
    """
    cursors = dict.fromkeys(_indexes(keys), 0)
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


def _indexes(keys: Keys) -> list[str]:
    return [index(shard) for index in (keys.conversations, keys.scopes) for shard in range(SHARDS)]
