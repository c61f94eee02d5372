"""Dead letters: messages whose turn failed repeatedly, set aside so that their chat goes on.

The messages stay under a key of their conversation, where every erasure finds them. The index over
all conversations holds only ids. Listings show when, where and the class of the error.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from time import time
from typing import Literal

from memory.queue.mailbox import Mailbox
from memory.queue.open_turn import OpenTurn
from memory.store.errors import LeaseLost
from memory.store.keys import Scope
from memory.store.store import Store

MAX_LETTERS = 32  # dead letters that a conversation keeps; the oldest one is dropped for a new one
_MAX_LISTED = 20


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """The messages of one turn; `id` is that of the turn, `at` is in Unix seconds."""

    conversation: Scope
    id: str
    at: float
    error: str


class DeadLetters:
    """Sets the messages of a turn aside, lists them, and puts them back."""

    def __init__(self, store: Store, mailbox: Mailbox, lease_ms: int) -> None:
        self._store = store
        self._mailbox = mailbox
        self._lease_ms = lease_ms

    async def set_aside(
        self,
        turn: OpenTurn,
        error: str,
        outbox: bytes,
        questions: Mapping[str, str] | None = None,
        *,
        is_kept: bool = True,
    ) -> None:
        """Set the entries of a turn aside and give it this outbox with its `questions`.

        Without `is_kept` no dead letter is stored, only the outbox. The index is written first, and
        alone, because a full Redis refuses it but not the script, which frees memory. Listings
        leave out its entries that have no dead letter. Raise `LeaseLost`.
        """
        lease, store = turn.lease, self._store
        request = {
            **lease.named,
            "turn": turn.id,
            "lease_ms": self._lease_ms,
            "ttl_s": store.ttl_s,
            "error": error,
            "max_letters": MAX_LETTERS,
            "is_kept": is_kept,
            "questions": questions or {},
        }
        members = [entry.to_member() for entry in turn.entries]
        member = f"{lease.conversation.tag}|{turn.id}"
        await store.client.call("ZADD", store.keys.dead_letters, int(time()), member)
        answer = await store.run("set_aside", lease.conversation, request, outbox, *members)
        if answer == b"refused":
            raise LeaseLost(lease.conversation.tag)

    async def listed(self) -> list[DeadLetter]:
        """Return the newest dead letters, newest first; remove index entries without one."""
        client, keys = self._store.client, self._store.keys
        members = await client.call("ZRANGE", keys.dead_letters, 0, _MAX_LISTED - 1, "REV")
        split = (member.decode().rpartition("|") for member in members)
        named = [(Scope(tag), id_) for tag, _, id_ in split]
        reads = [("HGET", keys.scope(scope).dead_letters, id_) for scope, id_ in named]
        heads = await client.pipeline(reads)
        letters, gone = [], []
        for member, (scope, id_), head in zip(members, named, heads, strict=True):
            if head is None:
                gone.append(member)
            else:
                at_ms, error, _ = head.decode().split("|")
                letters.append(DeadLetter(scope, id_, int(at_ms) / 1000, error))
        if gone:
            await client.call("ZREM", keys.dead_letters, *gone)
        return letters

    async def retry(self, conversation: Scope, id_: str) -> Literal["begun", "later", "nothing"]:
        """Put the messages back into the mailbox and wake the chat up.

        Return "later" while its turn is open, or while the lease that closed it is held.
        """
        # First, so that the sweep finds them after a crash.
        await self._store.client.pipeline([self._store.indexing(conversation)])
        request = {"letter": id_, "ttl_s": self._store.ttl_s}
        answer = await self._store.run("take_letter", conversation, request)
        await self._mailbox.wake(conversation)
        outcome: Literal["begun", "later", "nothing"] = answer.decode()
        return outcome
