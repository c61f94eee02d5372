"""Which albums of a group addressed the bot lately.

Telegram sends each picture of an album as a message of its own, and only one of them mentions the
bot. No picture, no text and no file's id is stored here.
"""

from time import time

from memory.store.keys import Scope
from memory.store.store import Store

ALBUM_S = 900
"""How long later pictures of an album, and edits of their captions, count as addressed."""


class AlbumMarks:
    """Remembers for `ALBUM_S` which albums addressed the bot. All methods raise `StoreError`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def note(self, conversation: Scope, sender_id: int, album: str) -> None:
        """Note that an album of this sender addresses the bot."""
        key, now = self._store.keys.scope(conversation).albums, int(time())
        await self._store.client.pipeline(
            [
                ("ZADD", key, now, f"{sender_id}|{album}"),
                ("ZREMRANGEBYSCORE", key, "-inf", now - ALBUM_S),
                ("EXPIRE", key, ALBUM_S),
            ]
        )

    async def has(self, conversation: Scope, sender_id: int, album: str) -> bool:
        """Return whether an album of this sender addresses the bot."""
        key = self._store.keys.scope(conversation).albums
        return await self._store.client.call("ZSCORE", key, f"{sender_id}|{album}") is not None
