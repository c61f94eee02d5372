"""Rings again for what a lost bell would have forgotten: waiting mail, parked turns, old indexes.

Bells can vanish with a Redis restart or failover; mail cannot be left behind for that.
"""

from collections.abc import AsyncIterator
from time import time

from memory.queue.mailbox import Mailbox
from memory.store.keys import SHARDS, Scope
from memory.store.store import Store

_RECENT_S = 48 * 3600
_PAGE = 500
_LEARN_AGAIN_S = 60

_BELL_COUNTS_S = 600
"""How old a bell may be to be relied on; one whose group was lost may stay unheard."""

_CLOCKS_APART_S = 60
"""How far in the future it may lie; after the server's clock went back nobody reclaims it."""


class Sweep:
    """Walks the indexes; safe to run in every process at once."""

    def __init__(self, store: Store, mailbox: Mailbox, lease_ms: int) -> None:
        self._client = store.client
        self._keys = store.keys
        self._scripts = store.scripts
        self._ttl_s = store.ttl_s
        self._mailbox = mailbox
        self._lease_ms = lease_ms

    async def wake_waiting(self, *, everything: bool) -> int:
        """Ring for every conversation with mail that has neither holder nor bell; return how many.

        Looks at the last 48 hours, newest first, or at everything. Under a lease longer than any
        that is given nothing counts: the server's clock went back.
        """
        woken = 0
        wake_ups: set[str] | None = None
        async for page in self._pages("-inf" if everything else int(time()) - _RECENT_S):
            names = [self._keys.conversation(conversation) for conversation in page]
            asked = [("ZCARD", name.mailbox) for name in names] + [
                ("PTTL", name.lease) for name in names
            ]
            answers = await self._client.pipeline(asked)
            for conversation, mail, left_ms in zip(
                page, answers, answers[len(page) :], strict=False
            ):
                if not mail or 0 <= left_ms <= self._lease_ms:
                    continue
                wake_ups = await self._wake_ups() if wake_ups is None else wake_ups
                if left_ms > self._lease_ms or conversation.tag not in wake_ups:
                    await self._mailbox.wake(conversation)
                    woken += 1
        return woken

    async def wake_due(self) -> int:
        """Ring for parked turns whose time has come; return how many."""
        due = await self._client.call(
            *("ZRANGEBYSCORE", self._keys.due, "-inf", int(time() * 1000)),
            *("WITHSCORES", "LIMIT", 0, _PAGE),
        )
        for tag, score in due:
            await self._mailbox.wake(Scope(tag.decode()))
            await self._scripts["take_due"]([self._keys.due], (tag, f"{score:.0f}"))
        return len(due)

    async def late_learning(self, most: int) -> list[Scope]:
        """Return conversations whose learning is overdue, each to one process at a time."""
        now = time()
        late = await self._client.call(
            *("ZRANGEBYSCORE", self._keys.learning, "-inf", now),
            *("WITHSCORES", "LIMIT", 0, most),
        )
        taken = []
        for tag, score in late:
            arguments = (tag, repr(score), now + _LEARN_AGAIN_S)
            if await self._scripts["postpone"]([self._keys.learning], arguments):
                taken.append(Scope(tag.decode()))
        return taken

    async def prune(self) -> None:
        """Drop index entries of conversations and persons that have expired."""
        expired = int(time()) - self._ttl_s
        await self._client.pipeline(
            [
                ("ZREMRANGEBYSCORE", index(shard), "-inf", expired)
                for index in (self._keys.conversations, self._keys.scopes)
                for shard in range(SHARDS)
            ]
        )

    async def _wake_ups(self) -> set[str]:
        """Return the tags for which a bell waits, or is in somebody's hands."""
        tags, start = set(), f"{int((time() - _BELL_COUNTS_S) * 1000)}"
        end = int((time() + _CLOCKS_APART_S) * 1000)
        while wake_ups := await self._client.call(
            "XRANGE", self._keys.ready_queue, start, end, "COUNT", _PAGE
        ):
            tags |= {fields[b"c"].decode() for _, fields in wake_ups}
            start = f"({wake_ups[-1][0].decode()}"
        return tags

    async def _pages(self, since: int | str) -> AsyncIterator[list[Scope]]:
        for shard in range(SHARDS):
            name, start = self._keys.conversations(shard), 0
            while tags := await self._client.call(
                *("ZREVRANGEBYSCORE", name, "+inf", since, "LIMIT", start, _PAGE)
            ):
                yield [Scope(tag.decode()) for tag in tags]
                start += len(tags)
