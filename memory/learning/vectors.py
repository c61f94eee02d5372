"""Vectors for what has none yet: messages, and the records of notebooks.

Takes up where the stored vectors end, so a crash only delays it. Never on a turn's path.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf

from memory.scopes import scope_memory
from memory.scopes.changes import NotWritten
from memory.scopes.entries import Record, read
from memory.scopes.history import fingerprint_of, version_of
from memory.scopes.log import message_of, packed, seq_of
from memory.search.embeddings import Embedder
from memory.search.message_search import indexed_text
from memory.store.commands import Command
from memory.store.keys import Scope, ScopeKeys
from memory.store.store import Store

_BATCH = 128


@dataclass(frozen=True, slots=True)
class _Shelf:
    """Where texts stand, where their vectors go, and what of an entry is embedded ("": nothing).

    `until` names the field with the last sequence that is embedded; "", or no such field: all are.
    """

    name: str
    fingerprint: str
    fingerprint_field: str
    until: str
    texts: Callable[[ScopeKeys], str]
    vectors: Callable[[ScopeKeys], str]
    text_of: Callable[[bytes, Mapping[bytes, bytes]], str]


class VectorLearner:
    """Embeds what was said and what was learned, for one model."""

    def __init__(self, store: Store, embedder: Embedder) -> None:
        self._client = store.client
        self._keys = store.keys
        self._scripts = store.scripts
        self._ttl_s = store.ttl_s
        self._embedder = embedder

    @property
    def model(self) -> str:
        """Name model and dimensions."""
        return self._embedder.fingerprint

    async def learn_messages(self, conversation: Scope) -> int:
        """Embed and store what was said and has no vector yet; return how many.

        Safe to repeat and to race. Vectors of another stamp are replaced from the beginning. Raise
        `NotWritten` when something is erased or another model's vectors come in between, or
        `EmbeddingsUnavailable`; what was stored until then stays, and the next call goes on. Does
        nothing where the vectors were given up for want of room.
        """
        meta = self._keys.scope(conversation).meta
        if await self._client.call("HEXISTS", meta, "lexical_only"):
            return 0
        shelf = _Shelf(
            "said",
            fingerprint_of(self._embedder),
            "vector_fingerprint",
            "off_at",
            lambda keys: keys.log,
            lambda keys: keys.vectors,
            _message_text,
        )
        return await self._learn(conversation, shelf)

    async def learn_records(self, scope: Scope) -> int:
        """Do the same for the records of a notebook."""
        shelf = _Shelf(
            "records",
            f"{self._embedder.fingerprint} | {scope_memory.RECIPE}",
            "record_vector_fingerprint",
            "",
            lambda keys: keys.records,
            lambda keys: keys.record_vectors,
            _record_text,
        )
        return await self._learn(scope, shelf)

    async def _learn(self, scope: Scope, shelf: _Shelf) -> int:
        keys, script = self._keys.scope(scope), self._scripts["learn_vectors"]
        learned = 0
        while True:
            meta, newest = await self._client.pipeline(
                [
                    ("HMGET", keys.meta, "epoch", "erasure", shelf.fingerprint_field),
                    ("XREVRANGE", shelf.vectors(keys), "+", "-", "COUNT", 1),
                ]
            )
            named = (shelf.name, *version_of(meta), shelf.fingerprint, self._ttl_s)
            is_other = meta[2] != shelf.fingerprint.encode()
            last = seq_of(newest[0][0]) if newest and not is_other else 0
            batch = await self._batch(keys, last, shelf)
            if not batch:
                return learned
            if is_other:
                await script(keys.all, named)
                continue
            rows = await self._embedder.embed([text for _, text in batch])
            vectors = zip(batch, map(packed, rows), strict=True)
            pairs = [argument for (seq, _), row in vectors for argument in (seq, row)]
            if await script(keys.all, (*named, last, *pairs)) != b"ok":
                raise NotWritten(scope.tag)
            learned += len(batch)

    async def _batch(self, keys: ScopeKeys, last: int, shelf: _Shelf) -> list[tuple[int, str]]:
        """Return sequence and text of the next entries that are embedded."""
        stream = shelf.texts(keys)
        while True:
            page: Command = ("XRANGE", stream, f"({last}-0", "+", "COUNT", _BATCH)
            bound: list[Command] = [("HGET", keys.meta, shelf.until)] if shelf.until else []
            entries, *until = await self._client.pipeline([page, *bound])
            texts = ((seq_of(entry), shelf.text_of(entry, fields)) for entry, fields in entries)
            end = int(until[0]) if any(until) else inf
            batch = [(seq, text) for seq, text in texts if text and seq <= end]
            if batch or not entries:
                return batch
            last = seq_of(entries[-1][0])


def _message_text(entry: bytes, fields: Mapping[bytes, bytes]) -> str:
    message = message_of(entry, fields)
    return "" if message.is_refused else indexed_text(message)


def _record_text(entry: bytes, fields: Mapping[bytes, bytes]) -> str:
    record = read(seq_of(entry), fields[b"k"].decode(), fields[b"j"])
    return record.indexed_text if isinstance(record, Record) else ""
