"""One announcement to many chats, and who gets it. Each chat gets it at most once.

One announcement is sent at a time, by one worker with a lease; the README says what a crash leaves.
"""

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Literal

import orjson

from bot.commands.notices import Mute
from memory.erasure.jobs import Job
from memory.store.errors import LeaseLost
from memory.store.keys import Scope
from memory.store.store import NamedLease, Scripts, Store

NAME = "announcement"  # the slot of what is stored for the whole bot
ACTIVE_DAYS = 90
ACTIVE_S = ACTIVE_DAYS * 86_400
_PAGE = 500
NEWS = "announcements"  # the topic of notes that have every worker look for an announcement
_KEPT_S = 7 * 86_400  # how long an announcement is kept that nobody carries on, or that has ended

Outcome = Literal["sent", "muted", "gone", "refused", "unknown", "later"]
"""How the sending to a chat ended. "gone": it counts as not reachable until it writes again.
"later": nothing was sent, and it is tried again at the end."""
_BAN_PAUSE_S = 3  # of all chats after a 429 of one; a second chat's 429 is about the whole bot
_COUNTED: tuple[Outcome, ...] = ("sent", "muted", "gone", "refused", "unknown")


@dataclass(frozen=True, slots=True)
class Pause:
    """How long a chat waits for its next try, and whether others wait too.

    `why` is "chat" if only this chat waits, and "ban" if Telegram answered with 429: then the
    others wait for a few seconds. They wait as long as this chat if it is "away", because Telegram
    cannot be reached, or if another chat got a 429 whose time is not over.
    """

    wait_s: float
    why: Literal["chat", "ban", "away"] = "chat"


@dataclass(frozen=True, slots=True)
class Announcement:
    """A confirmed announcement."""

    id: str  # the nonce of its confirmation
    chat_id: int  # of the operator
    message_id: int  # what is copied
    status_id: int  # the bot's message that shows the progress
    language: str  # of the operator


@dataclass(frozen=True, slots=True)
class AnnouncementProgress:
    """How far an announcement is."""

    announcement: Announcement
    total: int | None  # to how many chats it goes; None until all are collected
    counts: Mapping[str, int]  # how many of them ended in which way
    why_ended: str = ""  # "" unless it ended early

    @property
    def done(self) -> int:
        """The number of chats that need nothing more."""
        return sum(self.counts.values())


class Announcements:
    """Starts and stops announcements, gives them to workers, and finds the chats that get them."""

    def __init__(self, store: Store) -> None:
        self.client = store.client
        self.scripts = Scripts(store.client, Path(__file__).parent / "lua")
        self._store = store

    def key(self, part: str) -> str:
        """Name one of our keys."""
        return self._store.keys.of_feature(NAME, part)

    async def start(self, announcement: Announcement) -> bool:
        """Store an announcement, once; return false if another one is being sent."""
        id_, *about = astuple(announcement)
        request = {"id": id_, "about": orjson.dumps(about).decode(), "kept_s": _KEPT_S}
        keys = [self.key("job"), self.key("left")]
        is_started = bool(await self.scripts["start_announcement"](keys, request))
        await self._store.note(NEWS)
        return is_started

    async def stop(self, id_: str, why: str = "stopped") -> None:
        """Send the announcement of this id to no further chat."""
        if await self.knows(id_):
            await self.client.call("HSET", self.key("job"), "stop", f"{id_}|{why}")

    async def is_open(self) -> bool:
        """Return whether an announcement is being sent, or has not been reported yet."""
        return bool(await self.client.call("HEXISTS", self.key("job"), "due"))

    async def knows(self, id_: str) -> bool:
        """Return whether this is the latest announcement."""
        return bool(await self.client.call("HGET", self.key("job"), "id") == id_.encode())

    async def take(self, lease_s: float) -> "AnnouncementRun | None":
        """Return the open announcement with a lease on it; None if another worker holds it."""
        lease = self._store.lease(self.key("lease"), int(lease_s * 1000))
        return AnnouncementRun(self, lease) if await lease.hold() else None

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
        for index in self._store.keys.conversations:
            start = 0
            while found := await self.client.call(
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
        gone = await self.client.call("ZMSCORE", self.key("gone"), *active)
        # If both happened in one second, the chat counts as reachable: Telegram says if it is not.
        here = [
            chat for (chat, at), left in zip(active.items(), gone, strict=True) if at >= (left or 0)
        ]
        return {chat: active[chat] for chat in await self._not_muted(here)}

    async def _not_muted(self, people: Sequence[int]) -> list[int]:
        names = [self._store.keys.scope(Scope.of_person(person)).learned for person in people]
        stored = await self.client.pipeline([("HGET", name, Mute.PREFIX) for name in names])
        muted = (value is not None and Mute.read("", value.decode()).is_muted for value in stored)
        return [person for person, is_muted in zip(people, muted, strict=True) if not is_muted]

    async def forget(self, job: Job) -> None:
        """Remove who is erased; if a copy is on its way to them, its outcome is not stored."""
        keys = [*map(self.key, ("job", "left", "gone"))]
        chat = "" if job.kind == "all" else str(job.target)
        await self.scripts["forget_announcement"](keys, {"chat": chat})


class AnnouncementRun:
    """What one worker does with an announcement; every step raises `LeaseLost` or `StoreError`."""

    def __init__(self, announcements: Announcements, lease: NamedLease) -> None:
        self._announcements = announcements
        self.lease = lease

    async def read(self) -> AnnouncementProgress:
        """Return the announcement and its progress."""
        stored = await self._announcements.client.call("HGETALL", self._announcements.key("job"))
        if b"due" not in stored:  # another worker has ended it
            raise LeaseLost("announcement")
        id_ = stored[b"id"].decode()
        stopped, _, why = stored.get(b"stop", b"").decode().partition("|")
        return AnnouncementProgress(
            Announcement(id_, *orjson.loads(stored[b"about"])),
            int(stored[b"total"]) if b"total" in stored else None,
            {outcome: int(stored.get(outcome.encode(), 0)) for outcome in _COUNTED},
            why if stopped == id_ else "",
        )

    async def collect(self, is_meant: Callable[[int], bool]) -> None:
        """Store the chats that the announcement goes to, unless this was done before."""
        async for page in self._announcements.pages():
            meant = {str(chat): at for chat, at in page.items() if is_meant(chat)}
            pairs = [part for chat, at in meant.items() for part in (at, chat)]
            await self._step("fill_announcement", {"chats": pairs, "is_last": False})
            await self.lease.renew()
        await self._step("fill_announcement", {"chats": (), "is_last": True})

    async def next_chat(
        self, chat: int, outcome: Outcome, pause: Pause | None = None
    ) -> int | None:
        """Store how the sending to `chat` ended, and return the next chat, which stays in the set.

        Return 0 if no chat is left or the announcement was stopped, None if it has to wait. `chat`
        is 0 at first; `pause` belongs to "later". A repeat returns the same chat.
        """
        pause = pause or Pause(0)
        request = {
            "chat": str(chat),
            "outcome": outcome,
            "why": pause.why,
            "wait_ms": int(pause.wait_s * 1000),
            "pause_ms": _BAN_PAUSE_S * 1000,
        }
        given = await self._step("next_announcement", request)
        return int(given) if given else None

    async def open_chat(self, chat: int) -> bool:
        """Mark that the request to this chat begins now; false if the chat is to get none."""
        return await self._step("open_announcement", {"chat": str(chat)}) == b"ok"

    async def close(self, wait_s: float = 0) -> None:
        """End the announcement; with `wait_s` its receipt is tried again after that time."""
        await self._step("close_announcement", {"wait_ms": int(wait_s * 1000)})

    async def _step(self, script: str, request: Mapping[str, object]) -> bytes:
        keys = [*map(self._announcements.key, ("job", "left", "lease", "gone"))]
        lease = {"token": self.lease.token, "ttl_ms": self.lease.ttl_ms, "kept_s": _KEPT_S}
        request = {**lease, "gone_s": ACTIVE_S, **request}
        answer: bytes = await self._announcements.scripts[script](keys, request)
        if answer == b"lost":
            raise LeaseLost("announcement")
        return answer
