"""Takes what was erased off the disk: has the embedded server write its file anew, without it.

Only for a server of our own; what an operator's Redis keeps on disk is the operator's business.
"""

import asyncio
import contextlib

from memory.store.client import RedisClient
from memory.store.errors import StoreError

_LONGEST_S = 86_400
_RETRY_S = 1.0


async def keep_clean(client: RedisClient, erased: asyncio.Event) -> None:
    """Rewrite the file now, soon after each time `erased` is set, and daily, until cancelled.

    Now, since a crash may have come between an erasure and its rewrite; daily for what expired.
    """
    while True:
        erased.clear()
        await _rewrite(client)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LONGEST_S):
                await erased.wait()


async def _rewrite(client: RedisClient) -> None:
    while True:
        try:
            await client.call("BGREWRITEAOF")
        except StoreError:
            # Most likely one is under way, which may have begun before the erasure.
            await asyncio.sleep(_RETRY_S)
        else:
            return
