"""Who gets announcements: people with an active private chat who want them and can be reached."""

import time
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from typing import Self

from memory.scopes.changes import Write
from memory.scopes.field import Field, stays
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.store.keys import SHARDS, Scope
from memory.store.store import Store

ACTIVE_DAYS = 90
ACTIVE_S = ACTIVE_DAYS * 86_400
_PAGE = 500
_MUTED = "1"


@dataclass(frozen=True, slots=True)
class Mute(Field):
    """In a person's scope: whether they want no announcements, and which update said so last."""

    PREFIX = "mute"
    is_muted: bool
    by_update: int

    without = stays

    def _stored(self) -> str:
        return f"{_MUTED if self.is_muted else ''}|{self.by_update}"

    @classmethod
    def _read(cls, _: str, stored: str) -> Self:
        muted, _, update = stored.partition("|")
        return cls(muted == _MUTED, int(update))


def mutes(person: ScopeMemory) -> bool:
    """Return whether a person wants no announcements."""
    found = person.get(Mute)
    return found is not None and found.is_muted


class Audience:
    """Finds the private chats that an announcement goes to, and stores who wants none."""

    def __init__(self, store: Store, scopes: Scopes) -> None:
        self._client = store.client
        self._keys = store.keys
        self._scopes = scopes

    async def toggle_mute(self, person: int, update_id: int) -> bool:
        """Mute announcements for a person, or unmute them; return whether they are muted now.

        A repeat for the same update changes nothing. Raise `StoreError`.
        """
        return await self._set_mute(person, update_id, wanted=None)

    async def mute(self, person: int, update_id: int) -> None:
        """Mute announcements for a person; raise `StoreError`."""
        await self._set_mute(person, update_id, wanted=True)

    async def is_muted(self, person: int) -> bool:
        """Return whether a person wants no announcements, in one round trip."""
        return await self._not_muted([person]) == []

    async def count(self, is_meant: Callable[[int], bool], besides: int) -> int:
        """Return to how many chats an announcement goes, without the operator's own chat."""
        chats = {chat async for page in self.pages() for chat in page if is_meant(chat)}
        return len(chats - {besides})

    async def pages(self) -> AsyncIterator[dict[int, int]]:
        """Yield the chats that an announcement goes to, with the time of their last activity.

        Chats of private conversations that were active within `ACTIVE_DAYS`, without those that are
        muted or gone. A chat with topics may come twice. Times are in Unix seconds.
        """
        since = int(time.time()) - ACTIVE_S
        for shard in range(SHARDS):
            index, start = self._keys.conversations(shard), 0
            while found := await self._client.call(
                *("ZREVRANGEBYSCORE", index, "+inf", since, "WITHSCORES", "LIMIT", start, _PAGE)
            ):
                start += len(found)
                active: dict[int, int] = {}
                for tag, at in found:
                    scope = Scope(tag.decode())
                    if scope.is_private:
                        active[scope.chat_id] = max(int(at), active.get(scope.chat_id, 0))
                if active:
                    yield await self._reachable(active)

    async def _reachable(self, active: dict[int, int]) -> dict[int, int]:
        """Return these chats without the muted ones and those not active since they were gone."""
        gone = await self._client.call("ZMSCORE", self._keys.announcement("gone"), *active)
        # If both happened in one second, the chat counts as reachable: Telegram says if it is not.
        here = [
            chat for (chat, at), left in zip(active.items(), gone, strict=True) if at >= (left or 0)
        ]
        return {chat: active[chat] for chat in await self._not_muted(here)}

    async def _not_muted(self, people: Iterable[int]) -> list[int]:
        people = list(people)
        stored = await self._client.pipeline(
            [
                ("HGET", self._keys.scope(Scope.of_person(person)).learned, Mute.PREFIX)
                for person in people
            ]
        )
        muted = (value is not None and Mute.read("", value.decode()).is_muted for value in stored)
        return [person for person, is_muted in zip(people, muted, strict=True) if not is_muted]

    async def _set_mute(self, person: int, update_id: int, *, wanted: bool | None) -> bool:
        is_muted = True

        async def decide(here: ScopeMemory) -> Write | None:
            nonlocal is_muted
            known = here.get(Mute)
            if known and known.by_update == update_id:
                is_muted = known.is_muted
                return None
            is_muted = not mutes(here) if wanted is None else wanted
            return Write(fields=[Mute(is_muted, update_id)])

        await self._scopes.update(Scope.of_person(person), decide)
        return is_muted
