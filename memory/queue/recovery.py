"""Sends wake-ups again that were lost, and takes up parked turns and learning that are overdue.

Wake-ups can be lost when Redis restarts or fails over. Waiting messages must not be left behind.
"""

from collections.abc import AsyncIterator
from time import time

from memory.queue.mailbox import Mailbox
from memory.store.keys import TAG_FIELD, Scope
from memory.store.store import Store

_RECENT_S = 48 * 3600
_PAGE = 500
_LEARN_AGAIN_S = 60

_MAX_WAKE_UP_AGE_S = 600
"""An older wake-up does not count: if its consumer group was lost, no worker may ever read it."""

_WHENEVER_WRITTEN = {"last_update": str(2**53), "oldest_ms": 0}

_MAX_CLOCK_SKEW_S = 60
"""A wake-up later than this does not count: the clock went back, and nobody reclaims it."""


class Sweep:
    """Walks the indexes; safe to run in every process at once."""

    def __init__(self, store: Store, mailbox: Mailbox, lease_ms: int) -> None:
        self._store = store
        self._mailbox = mailbox
        self._lease_ms = lease_ms

    async def wake_waiting(self, *, everything: bool) -> int:
        """Wake up conversations whose messages have neither a lease nor a wake-up; return how many.

        Looks at the conversations that were active in the last 48 hours, or with `everything` at
        all of them, newest first. A lease that is longer than any we give does not count, because
        the clock of the server went back.
        """
        woken = 0
        wake_ups: set[str] | None = None
        async for page in self._pages("-inf" if everything else int(time()) - _RECENT_S):
            names = [self._store.keys.scope(conversation) for conversation in page]
            waiting = [("ZCARD", name.mailbox) for name in names]
            leases = [("PTTL", name.lease) for name in names]
            answers = await self._store.client.pipeline([*waiting, *leases])
            states = zip(page, answers[: len(page)], answers[len(page) :], strict=True)
            for conversation, count, left_ms in states:
                if not count or 0 <= left_ms <= self._lease_ms:
                    continue
                wake_ups = await self._wake_ups() if wake_ups is None else wake_ups
                if left_ms > self._lease_ms or conversation.tag not in wake_ups:
                    await self._mailbox.wake(conversation)
                    woken += 1
        return woken

    async def due_in_s(self) -> float:
        """Return in how many seconds the first parked or deferred turn is due; inf if none is."""
        return await self._store.due_in_s(self._store.keys.due)

    async def wake_due(self) -> int:
        """Wake up conversations whose parked or deferred turns are due; return how many."""
        key = self._store.keys.due
        due = await self._store.client.call(
            *("ZRANGEBYSCORE", key, "-inf", int(time() * 1000)), *("WITHSCORES", "LIMIT", 0, _PAGE)
        )
        for tag, score in due:
            await self._mailbox.wake(Scope(tag.decode()))
            request = {"member": tag.decode(), "score": f"{score:.0f}"}
            await self._store.scripts["take_due"]([key], request)
        return len(due)

    async def take_late_learning(self, max_conversations: int) -> list[Scope]:
        """Return conversations whose learning is overdue, each to one process at a time."""
        key, now = self._store.keys.learning, time()
        late = await self._store.client.call(
            *("ZRANGEBYSCORE", key, "-inf", now), *("WITHSCORES", "LIMIT", 0, max_conversations)
        )
        taken = []
        for tag, score in late:
            request = {"member": tag.decode(), "score": repr(score), "next": now + _LEARN_AGAIN_S}
            if await self._store.scripts["postpone"]([key], request):
                taken.append(Scope(tag.decode()))
        return taken

    async def prune(self) -> None:
        """Remove conversations and other scopes that have expired from the indexes."""
        expired, keys = int(time()) - self._store.ttl_s, self._store.keys
        indexes = (*keys.conversations, *keys.scopes)
        await self._store.client.pipeline(
            [("ZREMRANGEBYSCORE", index, "-inf", expired) for index in indexes]
        )

    async def prune_people(self) -> int:
        """Remove expired conversations from the indexes of the people who wrote there.

        Return how many. The index of a person must not expire by itself: others may keep a group
        alive for years, and an erasure has to find it. Walks through all keys.
        """
        store, removed = self._store, 0
        async for key in store.client.keys_like(store.keys.person("*")):
            for tag, stamp in (await store.client.call("HGETALL", key)).items():
                scope = Scope(tag.decode())
                index, meta = store.keys.index_of(scope), store.keys.scope(scope).meta
                # The index is written before the scope.
                listed, stored = await store.client.pipeline(
                    [("ZSCORE", index, scope.tag), ("EXISTS", meta)]
                )
                if listed is None and not stored:
                    request = {"conversation": scope.tag, "newest": "", **_WHENEVER_WRITTEN}
                    removed += await store.scripts["drop_unless_newer"]([key], request, stamp)
        return removed

    async def _wake_ups(self) -> set[str]:
        tags, start = set(), f"{int((time() - _MAX_WAKE_UP_AGE_S) * 1000)}"
        end = int((time() + _MAX_CLOCK_SKEW_S) * 1000)
        while entries := await self._store.client.call(
            "XRANGE", self._store.keys.ready_queue, start, end, "COUNT", _PAGE
        ):
            tags |= {fields[TAG_FIELD.encode()].decode() for _, fields in entries}
            start = f"({entries[-1][0].decode()}"
        return tags

    async def _pages(self, since: int | str) -> AsyncIterator[list[Scope]]:
        for name in self._store.keys.conversations:
            start = 0
            while tags := await self._store.client.call(
                *("ZREVRANGEBYSCORE", name, "+inf", since, "LIMIT", start, _PAGE)
            ):
                yield [Scope(tag.decode()) for tag in tags]
                start += len(tags)
