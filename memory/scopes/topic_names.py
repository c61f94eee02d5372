"""Which topics of private chats still have the name that Telegram gave them.

One key for each topic, for a week at most. After that the topic keeps its name.
"""

from typing import Literal

from memory.store.keys import Scope
from memory.store.store import Store

_KEPT_S = 7 * 86_400

NamedBy = Literal["telegram", "person", "bot"]


class TopicNames:
    """Remembers who named a topic. All methods raise `StoreError`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def note(self, topic: Scope, named_by: NamedBy) -> None:
        """Note who named a topic last; that Telegram did only counts if nothing is noted."""
        only_new = ("NX",) if named_by == "telegram" else ()
        key = self._store.keys.topic_name(topic)
        await self._store.client.call("SET", key, named_by, "EX", _KEPT_S, *only_new)

    async def needs_name(self, topic: Scope) -> bool:
        """Return whether neither a person nor the bot has named a topic."""
        named_by = await self._store.client.call("GET", self._store.keys.topic_name(topic))
        return bool(named_by == b"telegram")

    async def note_given(self, topic: Scope) -> None:
        """Note that the bot named a topic, unless a person did meanwhile."""
        if await self.needs_name(topic):
            await self.note(topic, "bot")
