"""Intake: an update is in its conversation's mailbox before Telegram is told that it arrived.

Also the doorbell's other half: who rings, and when. Reading bells is `doorbell`'s business.
"""

import asyncio
from dataclasses import dataclass
from enum import StrEnum
from time import time

from memory.store.client import Arg
from memory.store.errors import StoreUnavailable
from memory.store.keys import Scope
from memory.store.store import Store

SEEN_MS = 48 * 3600 * 1000
"""How long an update id is remembered; Telegram keeps undelivered updates for 24 hours."""

_REPLICATION_MS = 1_000

SEEN_MOST = 5_000
"""How many messages of one sender a conversation takes in, and how many commands, in two days.

At the bound intake refuses what this sender sends there, rather than forget an id; others' messages
and the sender's commands still come in.
"""


class MailboxFull(Exception):  # noqa: N818 - says when
    """Raised when a sender sent more to a conversation than they may; nothing was stored."""


class Outcome(StrEnum):
    """What intake did with an update."""

    TAKEN = "taken"
    DUPLICATE = "duplicate"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Entry:
    """One waiting update: what the protocol must know, and `body`, which only the bot reads."""

    update_id: int
    sender_id: int
    is_command: bool
    body: bytes

    def to_member(self) -> bytes:
        """Return the mailbox member."""
        kind = b"c" if self.is_command else b"t"
        return b"%d|%d|%b|%b" % (self.update_id, self.sender_id, kind, self.body)

    @classmethod
    def of_member(cls, member: bytes) -> "Entry":
        """Read a mailbox member."""
        update_id, sender_id, kind, body = member.split(b"|", 3)
        return cls(int(update_id), int(sender_id), kind == b"c", body)


class Mailbox:
    """Puts updates where a turn will find them, and where asked for on so many replicas as well."""

    def __init__(self, store: Store, wait_replicas: int = 0) -> None:
        self._client = store.client
        self._keys = store.keys
        self._scripts = store.scripts
        self._ttl_s = store.ttl_s
        self._wait_replicas = wait_replicas
        self._moved: dict[Scope, Scope] = {}

    async def put(self, conversation: Scope, entry: Entry) -> Outcome:
        """Store an update once and ring; raise `MailboxFull` or `StoreError` with nothing promised.

        The indexes of conversations and of the person's conversations are written first, so that
        nothing can be stored which a forgetting would not find. A person's first update since an
        erasure takes a second round trip: by then it is known up to where they are forgotten.
        """
        conversation = self._moved.get(conversation, conversation)
        keys = self._keys.conversation(conversation)
        sender = [self._keys.person(entry.sender_id), self._keys.person_epoch(entry.sender_id)]
        spoke = self._scripts["spoke"].command(sender, (conversation.tag, entry.update_id, SEEN_MS))
        arguments = (entry.update_id, entry.to_member(), self._ttl_s, SEEN_MOST, SEEN_MS)
        known = ("ZADD", self._keys.index_of(conversation), int(time()), conversation.tag)
        outcome, forgotten_until, detail = "unmet", b"", b""
        while outcome == "unmet":
            read = (forgotten_until, detail)
            taking = self._scripts["intake"].command(keys.all, (*arguments, *read))
            _, forgotten_until, answer = await self._client.pipeline([known, spoke, taking])
            outcome, detail = answer[0].decode(), answer[1]
        if outcome == "moved":
            self._moved[conversation] = Scope(detail.decode())
            return await self.put(conversation, entry)
        if outcome == "full":
            raise MailboxFull(conversation.tag)
        if self._wait_replicas and outcome != "dropped":
            index = self._keys.index_of(conversation)
            await self._replicate((keys.seen, entry.update_id), (index, conversation.tag))
        if outcome == "duplicate" or (outcome == "taken" and not detail):
            await self.wake(conversation, gathers=not entry.is_command)
        return Outcome(outcome)

    async def _replicate(self, *stored: tuple[str, Arg]) -> None:
        """Return when replicas have these members of sorted sets, and what was stored with them.

        So also what a duplicate stored before. Without the index no sweep would find the mail.
        """
        asked = (
            # Takes place only where the member is, which a failover may have lost meanwhile, and
            # changes it each time. Both scores are times, of which neither feels so small a step
            # back: 1 ms since an update arrived, 1 s since its conversation was active.
            self._client.is_replicated(
                ("ZADD", key, "XX", "INCR", -1, member), self._wait_replicas, _REPLICATION_MS
            )
            for key, member in stored
        )
        if not all(await asyncio.gather(*asked)):
            raise StoreUnavailable("too few replicas have it")

    async def wake(self, conversation: Scope, *, gathers: bool = False) -> None:
        """Tell the workers that a conversation has mail, or that more of it may follow."""
        more = ("g", "") if gathers else ()
        # A pipeline of one: where no connection is free it goes along with others'.
        wake_up = ("XADD", self._keys.ready_queue, "*", "c", conversation.tag, *more)
        await self._client.pipeline([wake_up])

    async def resolve(self, conversation: Scope) -> Scope:
        """Return the storage of a conversation: its own, or that of the group it moved from."""
        if conversation in self._moved or conversation.is_private:
            return self._moved.get(conversation, conversation)
        meta = self._keys.conversation(conversation).meta
        moved_from = await self._client.call("HGET", meta, "moved_from")
        if moved_from is None:
            return conversation
        return self._moved.setdefault(conversation, Scope(moved_from.decode()))

    async def move(self, old: Scope, new: Scope) -> None:
        """Let a new chat use an old one's storage; safe to repeat, nothing is copied."""
        old = await self.resolve(old)
        keys = self._keys.conversation(new)
        members = await self._scripts["move"](keys.all, (old.tag,))
        self._moved[new] = old
        for member in members:
            await self.put(old, Entry.of_member(member))
            await self._scripts["forwarded"](keys.all, (member,))
