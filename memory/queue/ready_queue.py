"""The ready queue: wake-ups that name conversations (or jobs) with work; it sends lost ones again.

It is one stream with one consumer group. A wake-up stays pending with one worker until that
worker acknowledges it, or dies and another one reclaims it. Wake-ups can be lost when Redis
restarts or fails over, so a sweep sends them again.
"""

from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass
from secrets import token_hex
from time import time

from memory.queue.mailbox import Mailbox
from memory.store.client import RedisClient
from memory.store.commands import Reply, Request
from memory.store.errors import StoreRefused
from memory.store.keys import TAG_FIELD, Scope
from memory.store.store import Scripts, Store, stream_entries
from memory.work.items import ANSWER_S

GROUP = "workers"
_REMOVE_AFTER_MS = 3600 * 1000


@dataclass(frozen=True, slots=True)
class WakeUp:
    """One delivery of a stream entry."""

    entry: bytes
    tag: str
    deliveries: int  # how often the entry was delivered

    @property
    def delivery(self) -> str:
        """Name this delivery: when another worker reclaims the entry, that is another delivery."""
        return f"{self.entry.decode()}|{self.deliveries}"


class ReadyQueue:
    """One worker's access to a stream of wake-ups; its consumer name is new at each start."""

    def __init__(self, client: RedisClient, scripts: Scripts, stream: str) -> None:
        self._client = client
        self._scripts = scripts
        self._stream = stream
        self._consumer = token_hex(8)

    async def read(self, max_wake_ups: int, block_ms: int) -> list[WakeUp]:
        """Wait up to `block_ms` for new wake-ups; return at most `max_wake_ups`, oldest first."""
        answer = await self._with_group(
            self._client.call(
                *("XREADGROUP", "GROUP", GROUP, self._consumer, "COUNT", max_wake_ups),
                *("BLOCK", block_ms, "STREAMS", self._stream, ">"),
            )
        )
        entries = answer[0][1] if answer else []
        return [
            WakeUp(entry, fields[TAG_FIELD.encode()].decode(), 1)
            for entry, fields in entries
            if fields
        ]

    async def reclaim(self, max_wake_ups: int, idle_ms: int) -> list[WakeUp]:
        """Take over wake-ups that no worker has renewed for `idle_ms`."""
        request = {"idle_ms": idle_ms, "max_wake_ups": max_wake_ups}
        answer = await self._with_group(self._run("reclaim", request))
        return [WakeUp(entry, tag.decode(), count) for entry, tag, count in answer or []]

    async def renew(self, wake_up: WakeUp) -> bool:
        """Keep a wake-up from being reclaimed; false if another worker has it."""
        return bool(await self._run("renew_wake_up", {"entry": wake_up.entry.decode()}))

    async def postpone(self, wake_up: WakeUp, wait_ms: int, idle_ms: int) -> None:
        """Let a wake-up be reclaimed after `wait_ms` by workers that reclaim after `idle_ms`.

        If `wait_ms` is longer than `idle_ms`, it is reclaimed after `idle_ms`.
        """
        await self._client.call(
            *("XCLAIM", self._stream, GROUP, self._consumer, 0, wake_up.entry),
            *("IDLE", max(0, idle_ms - wait_ms)),
        )

    async def acknowledge(self, wake_up: WakeUp, if_pending: str | None = None) -> None:
        """Remove a wake-up, unless another worker has it now.

        With `if_pending`, another delivery for the same conversation, only if that is still
        pending; "" is none.
        """
        request = {"entry": wake_up.entry.decode(), "deliveries": wake_up.deliveries}
        other = {} if if_pending is None else {"other": if_pending}
        await self._run("ack", {**request, **other})

    async def count_consumers(self, within_ms: int) -> int:
        """Return how many workers have read or renewed a wake-up within this time."""
        return int(await self._run("count_consumers", {"within_ms": within_ms}))

    async def remove_consumers(self) -> int:
        """Remove consumers that were idle for an hour and have no wake-up; return how many."""
        return int(await self._run("remove_consumers", {"idle_ms": _REMOVE_AFTER_MS}))

    async def leave(self) -> None:
        """Stop counting as a worker, unless a wake-up is still pending; call it after all reads."""
        await self._run("remove_consumers", {"only": self._consumer})

    async def _run(self, script: str, request: Request) -> Reply:
        named = {"group": GROUP, "consumer": self._consumer, **request}
        return await self._scripts[script]([self._stream], named)

    async def _with_group(self, call: Awaitable[Reply]) -> Reply:
        """Return the reply of a call; if there is no consumer group, create it and return None.

        The group starts at the first entry, so that no earlier wake-up is missed.
        """
        try:
            return await call
        except StoreRefused as error:
            if "NOGROUP" not in str(error):
                raise
        try:
            await self._client.call("XGROUP CREATE", self._stream, GROUP, "0", "MKSTREAM")
        except StoreRefused as error:
            if "BUSYGROUP" not in str(error):
                raise
        return None


_RECENT_S = 48 * 3600
_PAGE = 500
_LEARN_AGAIN_S = 60
_DUE_AGAIN_S = 1.0
_MAX_WAKE_UP_AGE_S = 600
"""An older wake-up does not count: if its consumer group was lost, no worker may ever read it."""
_WHENEVER_WRITTEN = {"last_update": str(2**53), "oldest_ms": 0}
_MAX_CLOCK_SKEW_S = 60
"""A wake-up later than this does not count: the clock went back, and nobody reclaims it."""


class Sweep:
    """Walks the indexes for what was left behind; safe to run in every process at once."""

    def __init__(self, store: Store, mailbox: Mailbox, lease_ms: int) -> None:
        self._store = store
        self._mailbox = mailbox
        self._lease_ms = lease_ms

    async def wake_waiting(self, *, everything: bool) -> int:
        """Wake up conversations whose messages have neither a lease nor a wake-up; return how many.

        Looks at the conversations that were active in the last 48 hours, or with `everything` at
        all of them, newest first. With `everything` it also lists work items that their index has
        lost. A lease that is longer than any we give does not count: the server's clock went back.
        """
        woken = 0
        wake_ups: set[str] | None = None
        async for page in self._pages("-inf" if everything else int(time()) - _RECENT_S):
            request = {"at_items": everything}
            calls = [self._store.call("left_behind", each, request) for each in page]
            states = dict(zip(page, await self._store.client.pipeline(calls), strict=True))
            for conversation, (count, left_ms, _) in states.items():
                if not count or 0 <= left_ms <= self._lease_ms:
                    continue
                wake_ups = await self._wake_ups() if wake_ups is None else wake_ups
                if left_ms > self._lease_ms or conversation.tag not in wake_ups:
                    await self._mailbox.wake(conversation)
                    woken += 1
            items = [(here.tag, id_.decode()) for here, (*_, ids) in states.items() for id_ in ids]
            # Not sooner, because an item may wait for its button.
            add = "ZADD", self._store.keys.work, "NX", round(1000 * (time() + ANSWER_S))
            await self._store.client.pipeline([(*add, f"{tag}|{id_}") for tag, id_ in items])
        return woken

    async def wake_due(self) -> float:
        """Wake up conversations whose parked or deferred turns are due.

        Return after how many seconds to look again; inf if no turn waits.
        """
        key = self._store.keys.due
        if (due_in_s := await self._store.due_in_s(key)) > 0:
            return due_in_s
        due = await self._store.client.call(
            *("ZRANGEBYSCORE", key, "-inf", int(time() * 1000)), *("WITHSCORES", "LIMIT", 0, _PAGE)
        )
        for tag, score in due:
            await self._mailbox.wake(Scope(tag.decode()))
            request = {"member": tag.decode(), "score": f"{score:.0f}"}
            await self._store.scripts["take_due"]([key], request)
        return _DUE_AGAIN_S

    async def take_late_learning(self, max_conversations: int) -> list[Scope]:
        """Return conversations whose learning is overdue, each to one process at a time."""
        now = time()
        request = {"now": now, "next": now + _LEARN_AGAIN_S, "max": max_conversations}
        late = await self._store.scripts["take_late"]([self._store.keys.learning], request)
        return [Scope(tag.decode()) for tag in late]

    async def prune(self) -> None:
        """Remove scopes and dead letters that have expired from the indexes."""
        expired, keys = int(time()) - self._store.ttl_s, self._store.keys
        indexes = (*keys.conversations, *keys.scopes, keys.dead_letters)
        trims = [("ZREMRANGEBYSCORE", index, "-inf", expired) for index in indexes]
        await self._store.client.pipeline(trims)

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
                reads = ("ZSCORE", index, scope.tag), ("EXISTS", meta)
                listed, stored = await store.client.pipeline(reads)
                if listed is None and not stored:
                    request = {"conversation": scope.tag, "newest": "", **_WHENEVER_WRITTEN}
                    removed += await store.scripts["drop_unless_newer"]([key], request, stamp)
        return removed

    async def _wake_ups(self) -> set[str]:
        start = f"{int((time() - _MAX_WAKE_UP_AGE_S) * 1000)}"
        end = f"{int((time() + _MAX_CLOCK_SKEW_S) * 1000)}"
        entries = stream_entries(self._store.client, self._store.keys.ready_queue, start, end)
        return {fields[TAG_FIELD.encode()].decode() async for _, fields in entries}

    async def _pages(self, since: int | str) -> AsyncIterator[list[Scope]]:
        call = self._store.client.call
        for name in self._store.keys.conversations:
            at = 0
            while tags := await call("ZREVRANGEBYSCORE", name, "+inf", since, "LIMIT", at, _PAGE):
                yield [Scope(tag.decode()) for tag in tags]
                at += len(tags)
