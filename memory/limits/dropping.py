"""Drops data to free memory, step by step: first vectors, then the oldest messages.

It decides the order, not when to begin or to stop. What was learned from messages stays.
"""

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from time import time

import structlog

from memory.scopes.field import name_of
from memory.scopes.fields import Watermark
from memory.scopes.log import seq_of, version_of
from memory.store.commands import Command, Reply
from memory.store.keys import SHARDS, Scope
from memory.store.store import Store

log = structlog.get_logger(__name__)

_PAGE = 100
_SLICE = 128
"""About how many messages of one conversation a step drops."""

_EVERYTHING = 2**53

WatermarkPlace = Callable[[Scope, int], tuple[Scope, str] | None]
"""Returns where the watermark of one behavior stands: scope and learner; None if it has none.

The arguments are the conversation and its generation.
"""


@dataclass(frozen=True, slots=True)
class Dropped:
    """How many vectors and messages were dropped."""

    vectors: int = 0
    messages: int = 0

    def __add__(self, other: "Dropped") -> "Dropped":
        """Return the sum."""
        return Dropped(self.vectors + other.vectors, self.messages + other.messages)


@dataclass(frozen=True, slots=True, order=True)
class _Oldest:
    """The oldest message of a conversation; messages from sequence `end` on must stay."""

    said_at: float
    conversation: Scope
    seq: int
    end: int
    version: tuple[str, str]


class Dropping:
    """Drops data of all conversations of a bot; the newest `tail` messages of each always stay."""

    def __init__(self, store: Store, tail: int, watermarks: Sequence[WatermarkPlace] = ()) -> None:
        self._client = store.client
        self._keys = store.keys
        self._scripts = store.scripts
        self._tail = tail
        self._watermarks = watermarks

    async def steps(self) -> AsyncGenerator[Dropped, None]:
        """Drop a little at each step and yield the counts, until nothing more may be dropped."""
        conversations = await self._by_activity()
        for page in _pages(conversations):
            for conversation in await self._with_vectors(page):
                keys = self._keys.scope(conversation).all
                dropped = Dropped(vectors=await self._scripts["drop_vectors"](keys))
                _report(conversation, dropped)
                yield dropped
        async for dropped in self._messages(conversations):
            yield dropped

    async def let_embed(self) -> None:
        """Let conversations whose vectors were dropped be embedded again."""
        now = time()
        for page in _pages(await self._by_activity()):
            names = [self._keys.scope(conversation).meta for conversation in page]
            removed = await self._client.pipeline(
                [("HDEL", name, "lexical_only") for name in names]
            )
            notes: list[Command] = [
                ("ZADD", self._keys.learning, now, conversation.tag)
                for conversation, was_lexical_only in zip(page, removed, strict=True)
                if was_lexical_only
            ]
            await self._client.pipeline(notes)

    async def _messages(self, conversations: Sequence[Scope]) -> AsyncGenerator[Dropped, None]:
        heads: list[_Oldest] = []
        for page in _pages(conversations):
            heads += await self._heads(page)
        heapify(heads)
        while heads:
            oldest = heappop(heads)
            keep = min(oldest.seq + _SLICE, oldest.end)
            keys = self._keys.scope(oldest.conversation).all
            epoch, erasure = oldest.version
            request = {"epoch": epoch, "erasure": erasure, "keep": keep, "window": self._tail}
            messages, vectors = await self._scripts["drop_messages"](keys, request)
            if not messages:
                continue
            dropped = Dropped(vectors, messages)
            _report(oldest.conversation, dropped)
            yield dropped
            for head in await self._heads([oldest.conversation]):
                heappush(heads, head)

    async def _by_activity(self) -> list[Scope]:
        """Return all conversations, the one that was inactive longest first."""
        shards = [self._keys.conversations(shard) for shard in range(SHARDS)]
        found: list[tuple[float, bytes]] = []
        for shard in shards:
            members = await self._client.call("ZRANGE", shard, 0, -1, "WITHSCORES")
            found += [(float(score), tag) for tag, score in members]
        return [Scope(tag.decode()) for _, tag in sorted(found)]

    async def _with_vectors(self, page: Sequence[Scope]) -> list[Scope]:
        names = [self._keys.scope(conversation).vectors for conversation in page]
        lengths = await self._client.pipeline([("XLEN", name) for name in names])
        return [each for each, length in zip(page, lengths, strict=True) if length]

    async def _heads(self, page: Sequence[Scope]) -> list[_Oldest]:
        """Return the oldest message of each conversation that may lose any."""
        names = [self._keys.scope(conversation).meta for conversation in page]
        metas = await self._client.pipeline(
            [("HMGET", name, "epoch", "erasure", "generation") for name in names]
        )
        generation = [int(meta[2] or 0) for meta in metas]
        reads = list(map(self._reads, page, generation))
        replies = iter(
            await self._client.pipeline([each for commands in reads for each in commands])
        )
        heads = []
        for conversation, meta, commands in zip(page, metas, reads, strict=True):
            first, *marks = [next(replies) for _ in commands]
            covered = min((int(mark or 0) for of in marks for mark in of), default=_EVERYTHING)
            if first and seq_of(first[0][0]) <= covered:
                heads.append(_head(conversation, first[0], meta, covered + 1))
        return heads

    def _reads(self, conversation: Scope, generation: int) -> list[Command]:
        """Return the commands that read the oldest message, and then the watermarks by scope."""
        keys = self._keys.scope(conversation)
        places: dict[Scope, list[str]] = {}
        found = (place_of(conversation, generation) for place_of in self._watermarks)
        for scope, learner in filter(None, found):
            places.setdefault(scope, []).append(name_of(Watermark, learner))
        marks = [
            ("HMGET", self._keys.scope(scope).learned, *fields) for scope, fields in places.items()
        ]
        oldest = ("XRANGE", keys.log, "-", "+", "COUNT", 1)
        return [oldest, *marks]


def _head(conversation: Scope, entry: Sequence[Reply], meta: Sequence[Reply], end: int) -> _Oldest:
    entry_id, fields = entry
    return _Oldest(float(fields[b"s"]), conversation, seq_of(entry_id), end, version_of(meta))


def _pages(conversations: Sequence[Scope]) -> Iterator[Sequence[Scope]]:
    for start in range(0, len(conversations), _PAGE):
        yield conversations[start : start + _PAGE]


def _report(conversation: Scope, dropped: Dropped) -> None:
    log.info(
        "dropped to free memory",
        conversation=conversation.tag,
        vectors=dropped.vectors,
        messages=dropped.messages,
    )
