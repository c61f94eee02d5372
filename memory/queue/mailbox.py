"""The mailbox: an update is stored in its conversation before Telegram learns that it arrived.

Also sends wake-ups, so that a worker takes the conversation up. `ready_queue` reads them.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from time import time
from typing import Literal, cast

import orjson

from memory.store.commands import Arg
from memory.store.errors import StoreUnavailable
from memory.store.keys import TAG_FIELD, Scope
from memory.store.store import Store

SEEN_MS = 48 * 3600 * 1000
"""How long an update id is remembered; Telegram keeps undelivered updates for 24 hours."""
MAX_UPDATES = 5_000
"""Messages that a conversation takes from one sender in two days; as many that are answered alone.

At this bound intake drops what the sender sends there, because it must not forget an update id.
Messages of others still come in, and at the bound of messages so do the sender's commands.
"""
_MAX_INDEXED = 10_000
"""A process remembers so many senders and conversations that it has indexed today."""
_MAX_SEARCHED = 1_000  # an edit is compared with so many waiting messages, the newest ones
_ALBUM_S = 900  # how long later pictures of an album, and edits of captions, count as addressed
_LETTER_MARKS = 2
_REPLICATION_MS = 1_000


class MailboxFull(Exception):
    """Raised when a sender has reached `MAX_UPDATES` in a conversation; nothing was stored."""


class Outcome(StrEnum):
    """What intake did with an update."""

    TAKEN = "taken"
    WAITS = "waits"  # taken; it is answered alone, after the turn that runs now
    DUPLICATE = "duplicate"
    DROPPED = "dropped"


Stopped = Literal["stopped", "answered", "not_yours", "nothing"]
"""What a stop found: a turn that it has stopped, a turn whose reply exists already, a turn that
another person asked for, or nothing."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One waiting update: what the queue must know, and `body`, which only the bot reads."""

    update_id: int
    sender_id: int
    is_alone: bool  # answered alone: a command, a document, an edit, the beginning of a session
    body: bytes
    is_grouped: bool = False  # forwarded or of an album, so others may come with it

    def to_member(self) -> bytes:
        """Return the member of the mailbox."""
        kind = b"c" if self.is_alone else b"f" if self.is_grouped else b"t"
        return b"%d|%d|%b|%b" % (self.update_id, self.sender_id, kind, self.body)

    @classmethod
    def of_member(cls, member: bytes) -> "Entry":
        """Read a member of the mailbox."""
        update_id, sender_id, kind, body = member.split(b"|", 3)
        return cls(int(update_id), int(sender_id), kind == b"c", body, kind == b"f")


class Mailbox:
    """Stores updates until a turn has answered them, also on `wait_replicas` replicas."""

    def __init__(self, store: Store, wait_replicas: int = 0) -> None:
        self._store = store
        self._wait_replicas = wait_replicas
        self._moved: dict[Scope, Scope] = {}
        self._indexed: set[tuple[Scope, int, int]] = set()

    async def put(
        self, conversation: Scope, entry: Entry, message: str = "", as_new: Entry | None = None
    ) -> Outcome:
        """Store an update once and wake its conversation up.

        `message` names the message that it brings or edits, if its id is to be kept. `as_new` is
        stored in place of an edit whose message was not stored: the edit made it address us.

        The indexes of conversations and of the sender are written before the script `intake` runs,
        so that a `/forget` finds all that is stored. README says more (First contact). Raise
        `MailboxFull` or `StoreError`; then Telegram must not be told that it arrived.
        """
        conversation = self._moved.get(conversation, conversation)
        today = (conversation, entry.sender_id, int(time()) // 86_400)
        store, keys = self._store, self._store.keys
        sender = [keys.person(entry.sender_id), keys.person_epoch(entry.sender_id)]
        said = {"tag": conversation.tag, "update_id": entry.update_id, "seen_ms": SEEN_MS}
        spoke = store.scripts["spoke"].command(sender, said)
        index = store.indexing(conversation)
        limits = {"max_updates": MAX_UPDATES, "seen_ms": SEEN_MS}
        request: dict[str, object] = {"ttl_s": store.ttl_s, "message": message, **limits}
        members = [each.to_member() for each in (entry, as_new) if each]
        while True:
            indexes = [index] if today in self._indexed else [index, spoke]
            intake = store.call("intake", conversation, request, *members)
            _, *forgotten_until, reply = await store.client.pipeline([*indexes, intake])
            answer: dict[str, str] = orjson.loads(reply)
            if answer["outcome"] != "unmet":
                break
            self._indexed.discard(today)
            if forgotten_until:
                request["forgotten_until"] = forgotten_until[0].decode()
                request["read_under"] = answer["erasure"]
        if len(self._indexed) >= _MAX_INDEXED:
            self._indexed.clear()
        self._indexed.add(today)

        outcome = answer["outcome"]
        if outcome == "moved":
            self._moved[conversation] = Scope(answer["storage"])
            return await self.put(conversation, entry, message, as_new)
        if outcome == "full":
            raise MailboxFull(conversation.tag)
        if outcome != "dropped":
            seen, listed = keys.scope(conversation).seen, keys.index_of(conversation)
            await self._replicate((seen, entry.update_id), (listed, conversation.tag))
        if outcome == "duplicate" or (outcome == "taken" and "is_held" not in answer):
            await self.wake(conversation)
        elif outcome == "taken" and entry.is_alone:
            return Outcome.WAITS
        return Outcome(outcome)

    async def edit(
        self, conversation: Scope, update_id: int, edited: Callable[[bytes], bytes | None]
    ) -> bool:
        """Change the words of a message that waits, or whose turn has no reply yet.

        `edited` returns the new body of an entry, or None if the edit is not about that entry. If
        it returns the same body, nothing changes. Return false if there is no such entry, or if its
        reply exists already. Safe to repeat; raise `StoreError`.
        """
        conversation = await self.resolve(conversation)
        store = self._store
        request = {"update_id": update_id, "seen_ms": SEEN_MS}
        while True:
            changes = ((each, edited(each.body)) for each in await self._waiting(conversation))
            change = next(((entry, body) for entry, body in changes if body is not None), None)
            if change is None:
                return False
            entry, body = change
            if body == entry.body:
                # Whoever stored this edit may have died before it sent the wake-up.
                await self.wake(conversation)
                return True
            members = (entry.to_member(), replace(entry, body=body).to_member())
            outcome = await store.run("edit_entry", conversation, request, *members)
            if outcome in (b"edited", b"duplicate"):
                await self.wake(conversation)
            if outcome != b"changed":
                return bool(outcome != b"answered")

    async def drop(self, conversation: Scope, is_meant: Callable[[Entry], bool]) -> None:
        """Erase the entries that are meant, and end the open turn that has taken one of them."""
        conversation = await self.resolve(conversation)
        for entry in await self._waiting(conversation):
            if is_meant(entry):
                await self._store.run("drop_entry", conversation, {}, entry.to_member())
                self._store.erased.set()  # the embedded server rewrites its file

    async def drop_sender(self, sender_id: int) -> None:
        """Erase what a sender has waiting anywhere, and end the turns that answer it."""
        tags = await self._store.client.call("HKEYS", self._store.keys.person(sender_id))
        for tag in tags:
            await self.drop(Scope(tag.decode()), lambda entry: entry.sender_id == sender_id)

    async def stop(
        self,
        conversation: Scope,
        update_id: int,
        person: int,
        draft: int = 0,
        *,
        as_admin: bool = False,
    ) -> Stopped:
        """Stop the open turn of an earlier message, or an earlier message that waits.

        It may be repeated. `draft` is the draft whose button was pressed, 0 without one. A signal
        tells the worker of the turn at once.
        """
        conversation = await self.resolve(conversation)
        request: dict[str, object] = {"draft": draft} if draft else {}
        request |= {"update_id": update_id, "person": str(person)}
        request |= {"by_admin": as_admin, "ttl_s": self._store.ttl_s}
        answer = (await self._store.run("stop", conversation, request)).decode()
        if answer == "waits":
            await self.wake(conversation)
            return "stopped"
        return cast(Stopped, answer)

    async def _waiting(self, conversation: Scope) -> list[Entry]:
        keys = self._store.keys.scope(conversation)
        reads = ("ZRANGE", keys.mailbox, 0, _MAX_SEARCHED - 1, "REV"), ("HVALS", keys.dead_letters)
        members, letters = await self._store.client.pipeline(reads)
        # The head of a dead letter is no entry.
        members += [each for each in letters if each.count(b"|") > _LETTER_MARKS]
        return [Entry.of_member(member) for member in members]

    async def _replicate(self, *stored: tuple[str, Arg]) -> None:
        """Wait until replicas have these members of sorted sets, and all that was written before.

        It also waits for a duplicate, because an earlier call may have failed here, and for the
        index, because without it no sweep would find the messages.
        """
        is_replicated = self._store.client.is_replicated
        within = self._wait_replicas, _REPLICATION_MS
        replicated = (
            # A conditional write that always changes something: an unchanged member is not sent to
            # replicas, and a missing one was lost in a failover. Both scores are times. One step
            # back does no harm: 1 ms for an update's arrival, 1 s for the last activity.
            is_replicated(("ZADD", key, "XX", "INCR", -1, member), *within)
            for key, member in stored
        )
        if self._wait_replicas and not all(await asyncio.gather(*replicated)):
            raise StoreUnavailable("too few replicas have it")

    async def wake(self, conversation: Scope) -> None:
        """Send a wake-up."""
        wake_up = ("XADD", self._store.keys.ready_queue, "*", TAG_FIELD, conversation.tag)
        # As a pipeline, because that can share a round trip if no connection is free.
        await self._store.client.pipeline([wake_up])

    async def resolve(self, conversation: Scope) -> Scope:
        """Return where a conversation is stored: under its own name, or that of its old group."""
        if conversation in self._moved or conversation.is_private:
            return self._moved.get(conversation, conversation)
        [moved_from] = await self._store.read_meta(conversation, "moved_from")
        if moved_from is None:
            return conversation
        return self._moved.setdefault(conversation, Scope(moved_from.decode()))

    async def move(self, old: Scope, new: Scope) -> None:
        """Let a new chat use the storage of an old one. Nothing is copied; safe to repeat."""
        old = await self.resolve(old)
        if old == new:  # an alias of itself would be followed for ever
            return
        members = await self._store.run("move", new, {"storage": old.tag})
        await self._replicate((self._store.keys.scope(new).seen, "moved"))
        await self._store.tell_erased(new)
        self._moved[new] = old
        for member in members:
            await self.put(old, Entry.of_member(member))
            await self._store.client.call("ZREM", self._store.keys.scope(new).mailbox, member)

    async def note_album(self, conversation: Scope, sender_id: int, album: str) -> None:
        """Note for a while that an album of this sender addresses the bot.

        Telegram sends each picture as a message of its own, and only one of them mentions the bot.
        No picture, no text and no file's id is kept.
        """
        key, now = self._store.keys.scope(conversation).albums, int(time())
        note = ("ZADD", key, now, f"{sender_id}|{album}")
        forget_old = ("ZREMRANGEBYSCORE", key, "-inf", now - _ALBUM_S)
        await self._store.client.pipeline([note, forget_old, ("EXPIRE", key, _ALBUM_S)])

    async def has_album(self, conversation: Scope, sender_id: int, album: str) -> bool:
        """Return whether an album addresses the bot."""
        key = self._store.keys.scope(conversation).albums
        return await self._store.client.call("ZSCORE", key, f"{sender_id}|{album}") is not None
