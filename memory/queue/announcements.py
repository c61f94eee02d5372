"""One announcement to many chats. Each chat gets it at most once, even after a crash.

One announcement is sent at a time, by one worker with a lease. The chats that are left are in a
sorted set. One script takes a chat out of it and marks this chat as open, before anything is sent.
So after a crash one chat is in doubt: it counts as unknown, and nothing is sent to it again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import orjson

from memory.queue.audience import ACTIVE_S, Audience
from memory.store.client import RedisClient
from memory.store.errors import LeaseLost
from memory.store.keys import Keys
from memory.store.store import ANNOUNCEMENTS, NamedLease, Store

_KEPT_S = 7 * 86_400
"""How long an announcement that nobody carries on, or one that has ended, is kept."""

Outcome = Literal["sent", "muted", "gone", "refused", "unknown", "later"]
"""How the sending to a chat ended. "gone": it counts as not reachable until it writes again.
"later": nothing was sent, and it is tried again at the end."""

_COUNTED: tuple[Outcome, ...] = ("sent", "muted", "gone", "refused", "unknown")


@dataclass(frozen=True, slots=True)
class Announcement:
    """A confirmed announcement; `id` is the nonce of its confirmation.

    `chat_id` and `message_id` name the message that is copied. `status_id` is the bot's message
    that shows the progress. `language` is the operator's.
    """

    id: str
    chat_id: int
    message_id: int
    status_id: int
    language: str


@dataclass(frozen=True, slots=True)
class AnnouncementProgress:
    """How far an announcement is: to how many chats it goes, and how many ended in which way.

    `total` is None until all chats are collected. `why_ended` is "" unless it ended early.
    """

    announcement: Announcement
    total: int | None
    counts: Mapping[str, int]
    why_ended: str = ""

    @property
    def done(self) -> int:
        """The number of chats that need nothing more."""
        return sum(self.counts.values())


class Announcements:
    """Starts and stops announcements, and gives them to workers."""

    def __init__(self, store: Store, audience: Audience) -> None:
        self._store = store
        self._client = store.client
        self._key = store.keys.announcement
        self._scripts = store.scripts
        self._audience = audience

    async def start(self, announcement: Announcement) -> bool:
        """Store an announcement, once; return false if another one is being sent."""
        about = (announcement.chat_id, announcement.message_id, announcement.status_id)
        request = {
            "id": announcement.id,
            "about": orjson.dumps((*about, announcement.language)).decode(),
            "kept_s": _KEPT_S,
        }
        keys = [self._key("job"), self._key("left")]
        is_started = bool(await self._scripts["start_announcement"](keys, request))
        await self._store.note(ANNOUNCEMENTS)
        return is_started

    async def stop(self, id_: str, why: str = "stopped") -> None:
        """Send the announcement of this id to no further chat."""
        job = self._key("job")
        if await self._client.call("HGET", job, "id") == id_.encode():
            await self._client.call("HSET", job, "stop", f"{id_}|{why}")

    async def is_open(self) -> bool:
        """Return whether an announcement is being sent, or has not been reported yet."""
        return bool(await self._client.call("HEXISTS", self._key("job"), "due"))

    async def knows(self, id_: str) -> bool:
        """Return whether this is the latest announcement."""
        return bool(await self._client.call("HGET", self._key("job"), "id") == id_.encode())

    async def take(self, lease_s: float) -> "AnnouncementRun | None":
        """Return the open announcement with a lease on it; None if another worker holds it."""
        lease = self._store.lease(self._key("lease"), int(lease_s * 1000))
        run = AnnouncementRun(self._store, self._audience, lease)
        return run if await lease.hold() else None


class AnnouncementRun:
    """What one worker does with an announcement; every step raises `LeaseLost` or `StoreError`."""

    def __init__(self, store: Store, audience: Audience, lease: NamedLease) -> None:
        self._client = store.client
        self._key = store.keys.announcement
        self._scripts = store.scripts
        self._audience = audience
        self._lease = lease

    async def renew(self) -> None:
        """Keep the lease."""
        if not await self._lease.hold():
            raise LeaseLost("announcement")

    async def release(self) -> None:
        """Give the lease back."""
        await self._lease.release()

    async def read(self) -> AnnouncementProgress:
        """Return the announcement and its progress."""
        stored = await self._client.call("HGETALL", self._key("job"))
        if b"about" not in stored:
            raise LeaseLost("announcement")
        id_ = stored[b"id"].decode()
        chat_id, message_id, status_id, language = orjson.loads(stored[b"about"])
        stopped, _, why = stored.get(b"stop", b"").decode().partition("|")
        return AnnouncementProgress(
            Announcement(id_, chat_id, message_id, status_id, language),
            int(stored[b"total"]) if b"total" in stored else None,
            {outcome: int(stored.get(outcome.encode(), 0)) for outcome in _COUNTED},
            why if stopped == id_ else "",
        )

    async def collect(self, is_meant: Callable[[int], bool]) -> None:
        """Store the chats that the announcement goes to, unless this was done before."""
        async for page in self._audience.pages():
            await self._fill({chat: at for chat, at in page.items() if is_meant(chat)})
            await self.renew()
        await self._fill({}, is_last=True)

    async def next_chat(self, chat: int, outcome: Outcome, wait_s: float = 0) -> int | None:
        """Store how the sending to `chat` ended, and take the next chat.

        Return 0 if no chat is left or the announcement was stopped, None if everything has to wait.
        `chat` is 0 at first, and `wait_s` belongs to "later". A repeat returns the same chat.
        """
        taken = await self._record(chat, outcome, wait_ms=int(wait_s * 1000))
        return int(taken) if taken else None

    async def leave(self, chat: int, outcome: Outcome) -> None:
        """Store how the sending to `chat` ended, and take no further one."""
        await self._record(chat, outcome, stops=True)

    async def close(self, wait_s: float = 0) -> None:
        """End the announcement; with `wait_s` it is only looked at again after that time."""
        await self._step("close_announcement", {"wait_ms": int(wait_s * 1000)})

    async def _record(
        self, chat: int, outcome: Outcome, *, wait_ms: int = 0, stops: bool = False
    ) -> bytes:
        request = {"chat": str(chat), "outcome": outcome, "wait_ms": wait_ms, "stops": stops}
        return await self._step("next_announcement", request)

    async def _fill(self, chats: Mapping[int, int], *, is_last: bool = False) -> None:
        members = [part for chat, at in chats.items() for part in (at, str(chat))]
        await self._step("fill_announcement", {"chats": members, "is_last": is_last})

    async def _step(self, script: str, request: Mapping[str, object]) -> bytes:
        keys = [self._key(part) for part in ("job", "left", "lease", "gone")]
        lease = {"token": self._lease.token, "ttl_ms": self._lease.ttl_ms, "kept_s": _KEPT_S}
        answer: bytes = await self._scripts[script](keys, {**lease, "gone_s": ACTIVE_S, **request})
        if answer == b"lost":
            raise LeaseLost("announcement")
        return answer


async def count_left(client: RedisClient, keys: Keys) -> int | None:
    """Return how many chats the open announcement still goes to, None if there is none."""
    is_open, left = await client.pipeline(
        [
            ("HEXISTS", keys.announcement("job"), "due"),
            ("ZCARD", keys.announcement("left")),
        ]
    )
    return int(left) if is_open else None


async def forget_chats(store: Store, chat: int | None) -> None:
    """Remove a chat from the chats that are left and from those that are gone; None: all chats."""
    keys = (store.keys.announcement(part) for part in ("left", "gone"))
    await store.client.pipeline(
        [("DEL", key) if chat is None else ("ZREM", key, chat) for key in keys]
    )
