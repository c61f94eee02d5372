"""What people switch in a conversation: its memory, the marks of learning, the operator's look.

While memory is off, nothing is learned, and only the messages of the window are stored. The
operator may look for an hour, if the people allow it. That permission ends after its hour, when it
is taken back, and with every erasure of the conversation or of a person in it.
"""

from collections.abc import Callable
from time import time

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


LOOK_S = 3600
_MAX_LISTED = 100


class OperatorLook:
    """The permissions of all conversations."""

    def __init__(self, store: Store, clock: Callable[[], float] = time) -> None:
        self._client = store.client
        self._keys = store.keys
        self._store = store
        self._clock = clock

    async def allow(self, conversation: Scope, update_id: int) -> None:
        """Let the operator look for an hour; a repeat of an older update changes nothing."""
        until = self._clock() + LOOK_S
        # The list is written first. `allowed` takes out entries without a permission.
        await self._client.pipeline(
            [
                ("ZADD", self._keys.looks, until, conversation.tag),
                ("EXPIRE", self._keys.looks, 2 * LOOK_S),
            ]
        )
        await self._set(conversation, update_id, until)

    async def end(self, conversation: Scope, update_id: int) -> None:
        """Take the permission back."""
        await self._set(conversation, update_id, 0)
        await self._client.call("ZREM", self._keys.looks, conversation.tag)

    async def until(self, conversation: Scope) -> float:
        """Return until when the operator may look, in Unix seconds; 0 if that is not allowed."""
        stored = await self._client.call("HGET", self._keys.scope(conversation).meta, "look")
        _, _, until_ms = (stored or b"").partition(b"|")
        until = int(until_ms or 0) / 1000
        return until if until > self._clock() else 0.0

    async def allowed(self) -> list[tuple[Scope, float]]:
        """Return the conversations at which the operator may look, and until when."""
        tags = await self._client.call(
            *("ZRANGEBYSCORE", self._keys.looks, self._clock(), "+inf", "LIMIT", 0, _MAX_LISTED)
        )
        listed = [Scope(tag.decode()) for tag in tags]
        found = [(scope, await self.until(scope)) for scope in listed]
        gone = [scope.tag for scope, until in found if not until]
        if gone:
            await self._client.call("ZREM", self._keys.looks, *gone)
        return [(scope, until) for scope, until in found if until]

    async def _set(self, conversation: Scope, update_id: int, until: float) -> None:
        request = {"update_id": update_id, "until": int(until * 1000), "ttl_s": self._store.ttl_s}
        await self._store.run("set_look", conversation, request)
