"""Dead letters: mail whose turn failed again and again, set aside so that its chat goes on.

What was said stays in its conversation's slot, where every erasure finds it; the index over all
conversations holds ids alone. Whoever lists letters sees when, where and what kind of error.
"""

from dataclasses import dataclass
from time import time

from memory.queue.mailbox import Mailbox
from memory.queue.turns import LeaseLost, OpenTurn
from memory.store.keys import Scope
from memory.store.store import Store

MAX_LETTERS = 32
"""Letters that a conversation keeps; the oldest goes when there is one more."""

_LOOKED_AT = 100
"""Letters, the newest ones, that a listing reads."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One turn's mail: `id` is the turn's, `error` the class of what went wrong, `at` Unix time."""

    conversation: Scope
    id: str
    at: float
    error: str


class DeadLetters:
    """Sets mail aside, lists it, and puts it back or drops it."""

    def __init__(self, store: Store, mailbox: Mailbox, lease_ms: int) -> None:
        self._client = store.client
        self._keys = store.keys
        self._scripts = store.scripts
        self._erased = store.erased
        self._ttl_s = store.ttl_s
        self._mailbox = mailbox
        self._lease_ms = lease_ms

    async def set_aside(self, turn: OpenTurn, error: str, outbox: bytes) -> None:
        """Set a turn's mail aside and give the turn an outbox instead; raise `LeaseLost`.

        The index comes first: an entry without a letter is left out of listings.
        """
        lease = turn.lease
        arguments = (lease.token, lease.epoch, lease.erasure, self._lease_ms, self._ttl_s)
        keys = self._keys.conversation(lease.conversation).all
        script = self._scripts["set_aside"].command(keys, (*arguments, error, MAX_LETTERS, outbox))
        note = ("ZADD", self._keys.dead_letters, int(time()), f"{lease.conversation.tag}|{turn.id}")
        _, answer = await self._client.pipeline([note, script])
        if answer == b"refused":
            raise LeaseLost(lease.conversation.tag)

    async def listed(self) -> list[DeadLetter]:
        """Return the newest letters, newest first; drop what expired or was erased."""
        index = self._keys.dead_letters
        expired = int(time()) - self._ttl_s
        _, members = await self._client.pipeline(
            [
                ("ZREMRANGEBYSCORE", index, "-inf", expired),
                ("ZRANGE", index, 0, _LOOKED_AT - 1, "REV"),
            ]
        )
        named = [_named(member) for member in members]
        heads = await self._client.pipeline(
            [("HGET", self._keys.conversation(where).dead_letters, id_) for where, id_ in named]
        )
        found = zip(named, members, heads, strict=True)
        gone = [member for _, member, head in found if head is None]
        if gone:
            await self._client.call("ZREM", index, *gone)
        return [_letter(*name, head) for name, head in zip(named, heads, strict=True) if head]

    async def retry(self, conversation: Scope, id_: str) -> bool:
        """Put a letter back into the mailbox and ring; false when there is none.

        The index of conversations comes first, so that a sweep finds the mail after a crash.
        """
        fingerprint = ("ZADD", self._keys.index_of(conversation), int(time()), conversation.tag)
        await self._client.pipeline([fingerprint])
        was_there = await self._take(conversation, id_, back="1")
        await self._mailbox.wake(conversation)
        return was_there

    async def drop(self, conversation: Scope, id_: str) -> bool:
        """Erase a letter; false when there is none."""
        was_there = await self._take(conversation, id_, back="")
        self._erased.set()
        return was_there

    async def _take(self, conversation: Scope, id_: str, *, back: str) -> bool:
        keys = self._keys.conversation(conversation).all
        return bool(await self._scripts["take_letter"](keys, (id_, back, self._ttl_s)))


def _named(member: bytes) -> tuple[Scope, str]:
    tag, _, id_ = member.decode().rpartition("|")
    return Scope(tag), id_


def _letter(conversation: Scope, id_: str, head: bytes) -> DeadLetter:
    at_ms, error, _ = head.decode().split("|")
    return DeadLetter(conversation, id_, int(at_ms) / 1000, error)
