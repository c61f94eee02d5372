"""The outbound budget: how fast Telegram lets one bot speak, to one chat and in all.

Says how long to wait and never waits itself, since whoever has waited must first make sure that
what it sends is still wanted. Workers share what Telegram allows in all; what several of them tell
one group within a minute, each counts for itself. Whatever they exceed together Telegram answers
with 429, which shuts the chat here until its end.
"""

import time
from collections.abc import Callable, Iterator

from bot.telegram.errors import FloodWait

LONGEST_WAIT_S = 20.0
_PRIVATE = (3, 1.0)
_GROUP = (5, 4.0)
"""At once, and the seconds after which one more may follow: about one a second in private, never
more than 20 in any minute in a group."""

_NOTHING_S = 0.001
"""A wait too short to be one."""

_SOON_S = 1.0
"""How long an answer may wait for the sake of typing, by a worker that was idle."""

_FEWEST_CHATS = 1_000


class Bucket:
    """Holds places that come back one at a time (the virtual scheduling of ITU-T I.371)."""

    def __init__(self, at_once: int, every_s: float) -> None:
        self._full_at = self._shut_until = float("-inf")
        self.pace(at_once, every_s)

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
        return self.wait_s(now, spare=1) <= (_SOON_S if self.is_idle(now) else 0)

    def take(self, now: float) -> None:
        """Take a place, also one that is still to come."""
        self._full_at = max(self._full_at, now) + self._every_s

    def shut(self, until: float) -> None:
        """Have no places before then, and one at a time afterwards; those given away are void."""
        self._shut_until = max(self._shut_until, until)
        self._full_at = max(self._full_at, until + self._slack_s)

    def shut_s(self, now: float) -> float:
        """Return for how long even who has a place must not use it; 0 when it is not shut."""
        shut_s = self._shut_until - now
        return shut_s if shut_s > _NOTHING_S else 0.0

    def is_idle(self, now: float) -> bool:
        """Say whether no place is taken, so that a new bucket would do as well."""
        return self._full_at <= now


class OutboundBudget:
    """Sends, edits, typing and deletions of one bot; `per_second` 0 is no budget at all."""

    def __init__(self, per_second: int, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._per_second = per_second
        self.is_on = per_second > 0
        self._all = Bucket(1, 1)
        self.share(1)
        self._chats: dict[int, Bucket] = {}
        self._sweep_at = _FEWEST_CHATS

    def share(self, workers: int) -> None:
        """Keep to one of so many equal parts of what the bot may send in all."""
        if self.is_on:
            extra = self._per_second // (6 * workers)
            self._all.pace(extra + 1, 1 / (self._per_second / workers - extra))

    def waits(self, chat_id: int) -> Iterator[float]:
        """Yield what to wait, first for the chat and then for all; take each place when asked.

        Begin anew where the chat was shut meanwhile: its topics are worked on side by side. Raise
        `FloodWait`, with nothing more taken, where a wait would be longer than `LONGEST_WAIT_S`.
        """
        yield from self._waits_once(chat_id)
        while self.is_on and self._chat(chat_id).shut_s(self._now()):
            yield from self._waits_once(chat_id)

    def take_spare(self, chat_id: int) -> bool:
        """Take a place for what may as well be left out, unless an answer could want its place."""
        now = self._now()
        if not all(bucket.has_spare(now) for bucket in self._buckets(chat_id)):
            return False
        self.take(chat_id)
        return True

    def take(self, chat_id: int) -> None:
        """Count a call that does not wait."""
        for bucket in self._buckets(chat_id):
            bucket.take(self._now())

    def take_unless_shut(self, chat_id: int) -> None:
        """Count a call that does not wait for a place; raise `FloodWait` while its chat is shut."""
        shut_s = self._chat(chat_id).shut_s(self._now()) if self.is_on else 0
        if shut_s:
            raise FloodWait(shut_s)
        self.take(chat_id)

    def shut(self, chat_id: int, for_s: float) -> None:
        """Heed Telegram's own word: calling sooner would lengthen the ban."""
        if self.is_on:
            self._chat(chat_id).shut(self._now() + for_s)

    def _waits_once(self, chat_id: int) -> Iterator[float]:
        for bucket in self._buckets(chat_id):
            wait_s = bucket.wait_s(self._now())
            if wait_s > LONGEST_WAIT_S:
                raise FloodWait(wait_s)
            bucket.take(self._now())
            if wait_s > _NOTHING_S:
                yield wait_s

    def _buckets(self, chat_id: int) -> tuple[Bucket, ...]:
        return (self._chat(chat_id), self._all) if self.is_on else ()

    def _chat(self, chat_id: int) -> Bucket:
        if len(self._chats) > self._sweep_at:
            now = self._now()
            self._chats = {id_: each for id_, each in self._chats.items() if not each.is_idle(now)}
            self._sweep_at = max(_FEWEST_CHATS, 2 * len(self._chats))
        return self._chats.setdefault(chat_id, Bucket(*(_PRIVATE if chat_id > 0 else _GROUP)))
