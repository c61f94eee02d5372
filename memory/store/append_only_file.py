"""Lets the embedded server rewrite its file, so that erased data leaves the disk.

Only for the embedded server; an operator decides what their own Redis keeps on disk.
"""

import asyncio
import contextlib

from memory.store.client import RedisClient
from memory.store.errors import StoreError

_MAX_PAUSE_S = 86_400
_RETRY_S = 1.0


async def keep_clean(client: RedisClient, erased: asyncio.Event) -> None:
    """Rewrite the file now, soon after each time `erased` is set, and daily, until cancelled.

    Now, because the process may have crashed between an erasure and its rewrite. Daily, because
    data expires.
    """
    while True:
        erased.clear()
        await _rewrite(client)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_MAX_PAUSE_S):
                await erased.wait()


async def _rewrite(client: RedisClient) -> None:
    while True:
        try:
            await client.call("BGREWRITEAOF")
        except StoreError:
            # Another rewrite is probably running. It may have begun before the erasure.
            await asyncio.sleep(_RETRY_S)
        else:
            return
