"""Embeds the messages and records of a scope that have no vector yet.

It continues after the newest stored vector, so a crash only delays it. No turn waits for it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from time import monotonic

from memory.learning.progress import Progress, messages_after
from memory.scopes import scope_memory
from memory.scopes.changes import NotWritten
from memory.scopes.entries import Record
from memory.scopes.log import UNKNOWN, StreamDelta, packed
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.scopes.stream import MessageStream
from memory.search.embeddings import Embedder, fingerprint_of
from memory.search.message_search import RECIPE

_BATCH = 128
_TOGETHER = 8
"""New messages wait for vectors until there are eight, or until the conversation pauses.

The window shows them meanwhile, and a search by vectors accepts ten messages without one
(`MessageStream.is_embedded`). Four turns then need one request instead of four.
"""
_HOLD_S = 3_600.0


@dataclass(slots=True)
class _Stream:
    """A stream that gets vectors with `fingerprint`; entries up to `last` have such vectors.

    `before` is the fingerprint of the vectors that are stored, "" if there are none.
    """

    name: str
    of: ScopeMemory
    fingerprint: str
    before: str
    last: int


class VectorLearner:
    """Embeds messages and records with one model."""

    def __init__(self, scopes: Scopes, embedder: Embedder) -> None:
        self._scopes = scopes
        self.embedder = embedder
        self._replaced: dict[tuple[str, str], float] = {}  # by scope and stream: when

    def has_many(self, said: MessageStream) -> bool:
        """Return whether new messages should be embedded now, before the conversation pauses."""
        if said.fingerprint not in ("", fingerprint_of(self.embedder, RECIPE)):
            return True
        new = (each for each in said.messages[-_TOGETHER:] if each.seq > said.newest_vector)
        return sum(1 for _ in new) == _TOGETHER

    async def learn_messages(self, progress: Progress) -> int:
        """Embed and store the messages that have no vector yet; return how many.

        It is safe to repeat and to run twice at the same time. If the stored vectors are of another
        model, all messages are embedded again.

        Raise `NotWritten` if something was erased or another model's vectors were stored meanwhile,
        and `EmbeddingsUnavailable` if the model fails. The vectors stored so far remain, and the
        next round continues after them.
        """
        fingerprint, before = fingerprint_of(self.embedder, RECIPE), progress.fingerprint
        last = progress.embedded if before == fingerprint else 0
        stream = _Stream("messages", progress.here, fingerprint, before, last)
        learned = 0
        while page := await messages_after(self._scopes, progress, last, _BATCH):
            texts = ((each.seq, each.embedded_text) for each in page if not each.is_refused)
            learned += await self._embed(stream, texts)
            last = page[-1].seq
        return learned

    async def learn_records(self, scope: ScopeMemory) -> int:
        """Embed the records of a scope in the same way; return how many. Raise the same errors."""
        fingerprint, before = fingerprint_of(self.embedder, scope_memory.RECIPE), scope.fingerprint
        last = scope.newest_vector if before == fingerprint else 0
        stream = _Stream("records", scope, fingerprint, before, last)
        new = (each for each in scope.of_kind(Record) if each.id > stream.last)
        return await self._embed(stream, ((each.id, each.embedded_text) for each in new))

    async def _embed(self, stream: _Stream, entries: Iterable[tuple[int, str]]) -> int:
        """Embed and store entries, except those without a text; return how many.

        A process replaces the vectors of another model once an hour, so that two processes with
        different models do not embed a conversation again at every change of hands.
        """
        replaces = stream.before not in ("", stream.fingerprint)
        replaced = (stream.of.scope.tag, stream.name)
        if replaces and monotonic() - self._replaced.get(replaced, -_HOLD_S) < _HOLD_S:
            return 0
        keys, (epoch, erasure) = self._scopes.store.keys.scope(stream.of.scope), stream.of.version
        rows_key = keys.record_vectors if stream.name == "records" else keys.vectors
        texts = [(entry_id, text) for entry_id, text in entries if text]
        for start in range(0, len(texts), _BATCH):
            ids, batch = zip(*texts[start : start + _BATCH], strict=True)
            embedded = await self.embedder.embed(batch)
            request = {
                "stream": stream.name,
                "epoch": epoch,
                "erasure": erasure,
                "fingerprint": stream.fingerprint,
                "before": stream.before,
                "after": stream.last,
                "ids": ids,
            }
            vectors, learn = [*map(packed, embedded)], self._scopes.store.scripts["learn_vectors"]
            answer = await learn((keys.meta, rows_key), request, *vectors)
            if answer == b"refused":
                raise NotWritten(stream.of.scope.tag)
            rows = list(zip(ids, vectors, strict=True))
            stored = StreamDelta(length=UNKNOWN, fingerprint=stream.fingerprint, vectors=rows)
            said = stream.of.messages
            is_next = said.newest_vector == stream.last and said.newest >= ids[-1]
            if answer:  # the revision of the records; messages have none
                stream.of.take_over(answer, stored)
            elif is_next and said.joins(stored):
                said.vectors_length += len(rows)
                said.add(stored)
            if replaces:
                self._replaced[replaced] = monotonic()
            stream.before, stream.last = stream.fingerprint, ids[-1]
        return len(texts)
