"""How fast the bot may send, to one chat and to all; which chats take drafts and rich messages.

The limits of drafts are kept in the process, because a frame is not worth a round trip to Redis.
One turn shows at most 38 frames in 30 seconds, so they matter only if two topics of one private
chat are answered at once. In one process both turns count together. In two processes Telegram's 429
pauses the frames of the process that got it, and no answer waits for that.
"""

import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from typing import Literal

import structlog

from bot.telegram.errors import BadToken, Blocked, FloodWait, Refused, TelegramError
from memory.queue.ready_queue import ReadyQueue
from memory.store.errors import StoreError, StoreFull
from memory.store.store import Store

MAX_WAIT_S = 20.0  # no caller waits longer: a permit that would take longer is not taken
_NEVER_MS = -1
_MAX_WAIT_MS = int(MAX_WAIT_S * 1000)
# Three at once and one more each second in private; five and one more every four seconds in a
# group, so never more than 20 a minute. The script `take_permit` explains the names.
_PRIVATE = {"every_ms": 1_000, "burst_ms": 2_000, "max_ms": 3_000 + _MAX_WAIT_MS}
_GROUP = {"every_ms": 4_000, "burst_ms": 16_000, "max_ms": 20_000 + _MAX_WAIT_MS}


def _rate_of(chat_id: int) -> dict[str, int]:
    return _PRIVATE if chat_id > 0 else _GROUP


@dataclass(frozen=True, slots=True)
class Permit:
    """Whether a permit was taken, how long to wait for it, and how long the chat is banned."""

    is_taken: bool
    wait_s: float
    ban_s: float


class SendRates:
    """How fast messages may be sent to each chat.

    The generic cell rate algorithm (ITU-T I.371): the remaining time of one small key says how many
    permits are taken, and it expires when the chat was quiet for long enough. Time is the server's.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def take(
        self, chat_id: int, max_wait_ms: int | None = _MAX_WAIT_MS, spare: int = 0
    ) -> Permit:
        """Take a permit, even one that is still to come; none if the wait would be too long.

        If `max_wait_ms` is None, the message does not wait; then none while the chat is banned.
        `spare` permits stay free.
        """
        request = {"spare": spare, **_rate_of(chat_id)}
        if max_wait_ms is not None:
            request["max_wait_ms"] = max_wait_ms
        keys, take = [self._store.keys.send_rate(chat_id)], self._store.scripts["take_permit"]
        taken, wait_ms, ban_ms = await take(keys, request)
        return Permit(taken == 1, wait_ms / 1000, ban_ms / 1000)

    async def take_spare(self, chat_id: int) -> bool:
        """Take a permit if there is one now and another one stays free; return whether."""
        every_ms, key = _rate_of(chat_id)["every_ms"], self._store.keys.send_rate(chat_id)
        with suppress(StoreFull):  # the script finds room
            # A quiet chat has no key.
            if await self._store.client.call("SET", key, "", "PX", every_ms, "NX"):
                return True
        return (await self.take(chat_id, 0, spare=1)).is_taken

    async def ban_s(self, chat_id: int) -> float:
        """Return for how many seconds nothing may be sent."""
        return (await self.take(chat_id, _NEVER_MS)).ban_s

    async def ban(self, chat_id: int, for_s: float) -> None:
        """Give no permits for so long, and one at a time afterwards; permits taken are void."""
        request = {"ban_ms": ceil(for_s * 1000), **_rate_of(chat_id)}
        await self._store.scripts["ban_chat"]([self._store.keys.send_rate(chat_id)], request)


_NOTHING_S = 0.001  # a wait that is too short to count
_SOON_S = 1.0
"""How long an answer of an idle worker may wait because "typing" took a permit."""


class SendRateLimiter:
    """Permits for sends, edits, deletes and typing of one bot; `per_second` 0 is no limit.

    Those of the whole bot come back one at a time, by the virtual scheduling of ITU-T I.371.
    """

    def __init__(
        self, per_second: int, chats: SendRates, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._now = now
        self._per_second = per_second
        self.is_on = per_second > 0
        self._chats = chats
        self._every_s = 1.0  # after how long one permit of the bot is free again
        self._burst_s = 0.0  # how far ahead permits may be taken
        self._full_at = float("-inf")
        self.share(1)

    def share(self, workers: int) -> None:
        """Keep to one of `workers` equal parts of the rate; permits that were taken stay taken."""
        if self.is_on:
            extra = self._per_second // (6 * workers)
            self._every_s = 1 / (self._per_second / workers - extra)
            self._burst_s = extra * self._every_s

    async def waits(self, chat_id: int, max_wait_s: float = MAX_WAIT_S) -> AsyncIterator[float]:
        """Take a permit of the chat and one of the whole bot; yield each wait in seconds.

        A permit is taken when its wait is asked for. If the chat was closed during a wait, both are
        taken again: its topics are answered in parallel. Raise `FloodWait`, with no further permit
        taken, if a wait would be longer than `max_wait_s`, and `StoreError` if the chat's limit
        cannot be read.
        """
        is_settled = not self.is_on
        while not is_settled:
            permit = await self._chats.take(chat_id, int(max_wait_s * 1000))
            chat_wait_s = permit.wait_s
            if not permit.is_taken:
                raise FloodWait(chat_wait_s)
            if chat_wait_s > _NOTHING_S:
                yield chat_wait_s
            bot_wait_s = self._wait_s()
            if bot_wait_s > max_wait_s:
                raise FloodWait(bot_wait_s)
            self._take()
            if bot_wait_s > _NOTHING_S:
                yield bot_wait_s
            has_waited = max(chat_wait_s, bot_wait_s) > _NOTHING_S
            is_settled = not (has_waited and await self._chats.ban_s(chat_id))

    async def take_spare(self, chat_id: int | None) -> bool:
        """Take a permit for a call that may be left out; return false if an answer could need it.

        It is one of the whole bot, and one of the chat if there is a `chat_id`. Return false if
        the chat's limit cannot be read.
        """
        if not self.is_on:
            return True
        # An answer must still find a permit at once. If all permits are free, it is enough that it
        # finds one soon: a bucket of one of many workers holds a single permit.
        longest_s = _SOON_S if self._full_at <= self._now() else 0
        if self._wait_s(spare=1) > longest_s:
            return False
        try:
            is_taken = chat_id is None or await self._chats.take_spare(chat_id)
        except StoreError:
            return False
        if is_taken:
            self._take()
        return is_taken

    async def take_unless_closed(self, chat_id: int) -> None:
        """Count a call that is made at once; raise `FloodWait` while its chat is closed."""
        if self.is_on:
            with suppress(StoreError):
                permit = await self._chats.take(chat_id, max_wait_ms=None)
                if not permit.is_taken:
                    raise FloodWait(permit.ban_s)
            self._take()

    async def close(self, chat_id: int, for_s: float) -> None:
        """Close a chat as long as Telegram bans it: calls during a ban lengthen it."""
        if self.is_on:
            with suppress(StoreError):
                await self._chats.ban(chat_id, for_s)

    def _wait_s(self, *, spare: int = 0) -> float:
        """Return the seconds until the bot has a permit, and `spare` more of them."""
        now = self._now()
        free_at = max(self._full_at, now) + spare * self._every_s - self._burst_s
        return max(0.0, free_at - now)

    def _take(self) -> None:
        """Take a permit of the bot, even one that is still to come."""
        self._full_at = max(self._full_at, self._now()) + self._every_s


async def share_with_workers(
    limiter: SendRateLimiter, ready_queue: ReadyQueue, lease_s: float
) -> None:
    """Count the workers that are alive and take an equal part of the rate; raise `StoreError`.

    A process that only takes updates in is not counted. It sends little (receipts under buttons and
    notices) and keeps to one worker's part as well, so the total may be higher by that much.
    """
    if limiter.is_on:
        limiter.share(max(1, await ready_queue.count_consumers(int(lease_s * 1000))))


log = structlog.get_logger(__name__)

_WINDOWS = ((5.0, 20), (30.0, 40))
"""So many seconds, so many calls: Telegram's limits for drafts and chat actions of one peer."""
_MAX_CALLS = 40
_REFUSED_S = 3600.0
_TROUBLE_S = 30.0  # after silence or an error of the server
_SERVER = 0
Method = Literal["sendMessageDraft", "sendRichMessage", "sendVoice", "setMessageReaction"]
"""Methods that a chat or an older server may refuse."""
_MAX_CHATS = 4096


class DraftLimits:
    """Only private chats are counted; `now` is a monotonic clock in seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._calls: dict[int, deque[float]] = {}
        self._refused_until: dict[tuple[Method, int], float] = {}
        self._closed_until: dict[int, float] = {}

    def accepts(self, method: Method, chat_id: int) -> bool:
        """Return false if the chat or the server refused the method recently."""
        keys = (method, _SERVER), (method, chat_id)
        return all(self._refused_until.get(key, 0) <= self._now() for key in keys)

    def take(self, chat_id: int) -> bool:
        """Count a call to a private chat; return false if it has to be left out."""
        if chat_id <= 0:
            return True
        now = self._now()
        if self._closed_until.get(chat_id, 0) > now:
            return False
        if len(self._calls) >= _MAX_CHATS and chat_id not in self._calls:
            # Drop what no longer limits anything; if that is not enough, drop all counts.
            oldest = now - max(in_s for in_s, _ in _WINDOWS)
            recent = {chat: at for chat, at in self._calls.items() if at[-1] > oldest}
            self._calls = recent if len(recent) < _MAX_CHATS else {}
            self._refused_until = {key: at for key, at in self._refused_until.items() if at > now}
            self._closed_until = {chat: at for chat, at in self._closed_until.items() if at > now}
        calls = self._calls.setdefault(chat_id, deque(maxlen=_MAX_CALLS))
        if any(len([at for at in calls if at > now - in_s]) >= most for in_s, most in _WINDOWS):
            return False
        calls.append(now)
        return True

    def pause(self, chat_id: int, for_s: float) -> None:
        """Leave out calls to a chat: during a ban each one would lengthen it."""
        self._closed_until[chat_id] = self._now() + for_s

    def failed(self, method: Method, chat_id: int, error: TelegramError) -> None:
        """Leave a method out for a while: an hour after a refusal, shorter after other trouble."""
        is_refusal = isinstance(error, Refused | Blocked | BadToken)
        pause_s = _REFUSED_S if is_refusal else _TROUBLE_S
        # Telegram answers 404 for a method that the server does not know.
        key = _SERVER if isinstance(error, BadToken) else chat_id
        if len(self._refused_until) >= _MAX_CHATS:
            self._refused_until.clear()  # then each chat may refuse once more
        self._refused_until[method, key] = self._now() + pause_s
        log.info("method paused", method=method, reason=type(error).__name__, pause_s=pause_s)
