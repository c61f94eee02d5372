"""Turns memory of a conversation off and on.

While it is off, nothing is learned, and only the messages of the window are stored.
"""

from memory.store.keys import Scope
from memory.store.store import Store


class MemorySwitch:
    """The switch of a conversation; an erasure does not change it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def turn_off(self, conversation: Scope) -> None:
        """Remember nothing that is said from now on; a repeat changes nothing."""
        await self._store.run("turn_off", conversation, {"ttl_s": self._store.ttl_s})

    async def turn_on(self, conversation: Scope) -> int:
        """Remember again, and erase what was said meanwhile; return the number of these messages.

        If there were any, an open turn starts again.
        """
        erased = int(await self._store.run("turn_on", conversation, {"ttl_s": self._store.ttl_s}))
        if erased:
            await self._store.tell_erased(conversation)
        return erased

    async def toggle_quiet(self, conversation: Scope, update_id: int) -> bool:
        """Show no marks where something is learned, or show them again; return whether it is quiet.

        A repeat for the same update changes nothing.
        """
        meta = self._store.keys.scope(conversation).meta
        stored = await self._store.client.call("HGET", meta, "quiet")
        by, _, was_quiet = (stored or b"").decode().partition("|")
        if by == str(update_id):
            return bool(was_quiet)
        await self.set_quiet(conversation, is_quiet=not was_quiet, update_id=update_id)
        return not was_quiet

    async def set_quiet(
        self, conversation: Scope, *, is_quiet: bool, update_id: int | str = ""
    ) -> None:
        """Show no marks where something is learned, or show them."""
        meta = self._store.keys.scope(conversation).meta
        quiet = f"{update_id}|{1 if is_quiet else ''}"
        await self._store.client.pipeline(
            [("HSET", meta, "quiet", quiet), ("EXPIRE", meta, self._store.ttl_s)]
        )
