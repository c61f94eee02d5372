"""Pictures of albums in groups: which of them belong to a message that addresses us.

Telegram sends each picture of an album as a message of its own, and only one of them mentions us.
The others belong to it. One that comes before it waits in the memory of this process, because group
talk that does not address us is stored nowhere.
"""

import asyncio
from collections.abc import Awaitable, Callable

from bot.telegram.updates import IncomingMessage
from memory.queue.mailbox import Mailbox
from memory.store.keys import Scope

_HELD_S = 5.0
"""How long a picture waits for another one of its album that addresses us. Then it is dropped."""
_MAX_HELD = 500
"""How many albums may wait in a process. Pictures of further albums are dropped."""

_Key = tuple[Scope, int, str]


class Albums:
    """Stores every message, and the pictures of its album; `store` puts one into its mailbox."""

    def __init__(
        self,
        mailbox: Mailbox,
        store: Callable[[IncomingMessage], Awaitable[None]],
        held_s: float = _HELD_S,
    ) -> None:
        self._mailbox = mailbox
        self._store = store
        self._held_s = held_s
        self._held: dict[_Key, dict[int, IncomingMessage]] = {}

    async def begin(self, message: IncomingMessage) -> None:
        """Store a message that addresses us, and the pictures of its album that came before.

        Raise `StoreError`. Pictures that were not stored then go on waiting.
        """
        if not (message.is_group and message.album) or message.kind == "command":
            await self._store(message)
            return
        key = await self._key(message)
        await self._mailbox.albums.note(*key)
        await self._release(key, message)

    async def join(self, part: IncomingMessage) -> None:
        """Store a message that does not address us if its album does; otherwise let it wait.

        Raise `StoreError`.
        """
        key = await self._key(part)
        if part.kind != "edit":  # held before we look, so that `begin` misses none
            self._hold(key, part)
        if await self._mailbox.albums.has(*key):
            await self._release(key, part)

    def _hold(self, key: _Key, part: IncomingMessage) -> None:
        if key not in self._held:
            if len(self._held) >= _MAX_HELD:
                return
            asyncio.get_running_loop().call_later(self._held_s, self._held.pop, key, None)
        self._held.setdefault(key, {})[part.update_id] = part

    async def _release(self, key: _Key, message: IncomingMessage) -> None:
        """Store a message and what waits for it."""
        held = self._held.get(key, {})
        for each in ({message.update_id: message} | held).values():
            await self._store(each)
            held.pop(each.update_id, None)

    async def _key(self, message: IncomingMessage) -> _Key:
        conversation = Scope.of_chat(message.chat_id, message.topic_id)
        return await self._mailbox.resolve(conversation), message.sender.id, message.album
