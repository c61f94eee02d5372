"""Whom operators have let in or refused, as this process knows it; an id below 0 is a group.

Every process keeps the ids in its memory and reads them again when their version has changed.
"""

from memory.store.store import Store


class Members:
    """The ids in Redis that this process has read."""

    def __init__(self, store: Store) -> None:
        self.admitted: frozenset[int] = frozenset()
        self.refused: frozenset[int] = frozenset()
        # People who were in before. Whoever drops what they have waiting also empties it.
        self.removed: set[int] = set()
        self._client = store.client
        self._key = store.keys.access
        self._version: bytes | None = None

    async def refresh(self) -> None:
        """Read the ids if they have changed; else it is one round trip. Raise `StoreError`."""
        key = self._key
        while (version := await self._client.call("GET", key("version"))) != self._version:
            known = self._version
            admitted, refused = await self._client.pipeline(
                [("HKEYS", key("admitted")), ("HKEYS", key("refused"))]
            )
            if self._version != known:
                continue  # Another call has read the list meanwhile; these ids may be older.
            admitted = frozenset(map(int, admitted))
            self.removed |= self.admitted - admitted
            self.admitted, self.refused = admitted, frozenset(map(int, refused))
            self._version = version
            return
