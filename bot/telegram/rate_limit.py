"""The outbound budget: how fast Telegram lets one bot speak, to one chat and in all.

Says how long to wait and never waits itself, since whoever has waited must first make sure that
what it sends is still wanted. What a chat has taken all processes know; of what the bot may send in
all each worker has an equal part.
"""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from bot.telegram.errors import FloodWait
from memory.limits.send_rate import LONGEST_WAIT_S, Pace, SendRates
from memory.store.errors import StoreError

_PRIVATE = Pace(at_once=3, every_s=1.0)
_GROUP = Pace(at_once=5, every_s=4.0)
"""About one a second in private, never more than 20 in any minute in a group."""

_NOTHING_S = 0.001
"""A wait too short to be one."""

_SOON_S = 1.0
"""How long an answer may wait for the sake of typing, by a worker that was idle."""


class TokenBucket:
    """Holds places that come back one at a time (the virtual scheduling of ITU-T I.371)."""

    def __init__(self) -> None:
        self._full_at = float("-inf")
        self.pace(1, 1)

    def pace(self, at_once: int, every_s: float) -> None:
        """Hold so many places from now on; what is taken stays taken."""
        self._every_s = every_s
        self._slack_s = (at_once - 1) * every_s

    def wait_s(self, now: float, *, spare: int = 0) -> float:
        """Return how long until there is a place, and `spare` more of them."""
        free_at = max(self._full_at, now) + spare * self._every_s - self._slack_s
        return max(0.0, free_at - now)

    def has_spare(self, now: float) -> bool:
        """Say whether an answer would still find a place at once if one were taken.

        Or soon, where none is taken: one of many workers holds a single place of all.
        """
        return self.wait_s(now, spare=1) <= (_SOON_S if self._full_at <= now else 0)

    def take(self, now: float) -> None:
        """Take a place, also one that is still to come."""
        self._full_at = max(self._full_at, now) + self._every_s


class OutboundBudget:
    """Sends, edits, typing and deletions of one bot; `per_second` 0 is no budget at all."""

    def __init__(
        self, per_second: int, chats: SendRates, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._now = now
        self._per_second = per_second
        self.is_on = per_second > 0
        self._all = TokenBucket()
        self._chats = chats
        self.share(1)

    def share(self, workers: int) -> None:
        """Keep to one of so many equal parts of what the bot may send in all."""
        if self.is_on:
            extra = self._per_second // (6 * workers)
            self._all.pace(extra + 1, 1 / (self._per_second / workers - extra))

    async def waits(self, chat_id: int) -> AsyncIterator[float]:
        """Yield what to wait, first for the chat and then for all; take each place when asked.

        Begin anew where the chat was shut meanwhile: its topics are worked on side by side. Raise
        `FloodWait`, with nothing more taken, where a wait would be longer than `LONGEST_WAIT_S`,
        and `StoreError` where the chat's measure cannot be read.
        """
        is_settled = not self.is_on
        while not is_settled:
            of_chat_s = await self._take_of_chat(chat_id)
            if of_chat_s > _NOTHING_S:
                yield of_chat_s
            of_all_s = self._take_of_all()
            if of_all_s > _NOTHING_S:
                yield of_all_s
            has_waited = max(of_chat_s, of_all_s) > _NOTHING_S
            is_settled = not (has_waited and await self._chats.ban_s(chat_id, _of(chat_id)))

    async def take_spare(self, chat_id: int) -> bool:
        """Take a place for what may as well be left out, unless an answer could want its place."""
        if not self.is_on:
            return True
        if not self._all.has_spare(self._now()):
            return False
        with suppress(StoreError):
            if await self._chats.take_spare(chat_id, _of(chat_id)):
                self._all.take(self._now())
                return True
        return False

    async def take(self, chat_id: int) -> None:
        """Count a call that does not wait."""
        with suppress(FloodWait):
            await self.take_unless_shut(chat_id)

    async def take_unless_shut(self, chat_id: int) -> None:
        """Count a call that does not wait for a place; raise `FloodWait` while its chat is shut."""
        if self.is_on:
            with suppress(StoreError):
                place = await self._chats.count(chat_id, _of(chat_id))
                if not place.is_taken:
                    raise FloodWait(place.ban_s)
            self._all.take(self._now())

    async def shut(self, chat_id: int, for_s: float) -> None:
        """Heed Telegram's own word: calling sooner would lengthen the ban."""
        if self.is_on:
            with suppress(StoreError):
                await self._chats.shut(chat_id, _of(chat_id), for_s)

    async def _take_of_chat(self, chat_id: int) -> float:
        place = await self._chats.take(chat_id, _of(chat_id))
        if not place.is_taken:
            raise FloodWait(place.wait_s)
        return place.wait_s

    def _take_of_all(self) -> float:
        wait_s = self._all.wait_s(self._now())
        if wait_s > LONGEST_WAIT_S:
            raise FloodWait(wait_s)
        self._all.take(self._now())
        return wait_s


def _of(chat_id: int) -> Pace:
    return _PRIVATE if chat_id > 0 else _GROUP
