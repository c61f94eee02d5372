"""Embeds the messages and records of a scope that have no vector yet.

It continues after the newest stored vector, so a crash only delays it. No turn waits for it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf

from memory.scopes import scope_memory
from memory.scopes.changes import NotWritten
from memory.scopes.entries import Record, read
from memory.scopes.log import message_of, packed, seq_of, version_of
from memory.scopes.stream import fingerprint_of
from memory.search import message_search
from memory.search.embeddings import Embedder
from memory.store.commands import Command
from memory.store.keys import Scope
from memory.store.scope_keys import ScopeKeys
from memory.store.store import Store

_BATCH = 128


@dataclass(frozen=True, slots=True)
class _Stream:
    """One kind of stream: its keys, its field in `meta`, and the text of an entry to embed.

    `text_of` returns "" for an entry that gets no vector. `until` names the field of `meta` with
    the last id to embed. If it is "", or if there is no such field, all entries are embedded.
    """

    name: str
    recipe: str
    fingerprint_field: str
    until: str
    texts: Callable[[ScopeKeys], str]
    vectors: Callable[[ScopeKeys], str]
    text_of: Callable[[bytes, Mapping[bytes, bytes]], str]


def _message_text(entry: bytes, fields: Mapping[bytes, bytes]) -> str:
    message = message_of(entry, fields)
    return "" if message.is_refused else message_search.embedded_text(message)


def _record_text(entry: bytes, fields: Mapping[bytes, bytes]) -> str:
    record = read(seq_of(entry), fields[b"k"].decode(), fields[b"j"])
    return record.embedded_text if isinstance(record, Record) else ""


_MESSAGES = _Stream(
    name="messages",
    recipe=message_search.RECIPE,
    fingerprint_field="vector_fingerprint",
    until="off_at",
    texts=lambda keys: keys.log,
    vectors=lambda keys: keys.vectors,
    text_of=_message_text,
)
_RECORDS = _Stream(
    name="records",
    recipe=scope_memory.RECIPE,
    fingerprint_field="record_vector_fingerprint",
    until="",
    texts=lambda keys: keys.records,
    vectors=lambda keys: keys.record_vectors,
    text_of=_record_text,
)


class VectorLearner:
    """Embeds messages and records with one model."""

    def __init__(self, store: Store, embedder: Embedder) -> None:
        self._client = store.client
        self._keys = store.keys
        self._scripts = store.scripts
        self._ttl_s = store.ttl_s
        self._embedder = embedder

    @property
    def model(self) -> str:
        """The embedding model and its dimensions."""
        return self._embedder.fingerprint

    async def learn_messages(self, conversation: Scope) -> int:
        """Embed and store the messages that have no vector yet; return how many.

        It is safe to repeat and to run twice at the same time. If the stored vectors are of another
        model, all messages are embedded again. If the vectors were dropped because Redis was full,
        nothing is embedded.

        Raise `NotWritten` if something was erased or another model's vectors were stored meanwhile,
        and `EmbeddingsUnavailable` if the model fails. The vectors stored so far remain, and the
        next call continues after them.
        """
        meta = self._keys.scope(conversation).meta
        if await self._client.call("HEXISTS", meta, "lexical_only"):
            return 0
        return await self._learn(conversation, _MESSAGES)

    async def learn_records(self, scope: Scope) -> int:
        """Embed the records of a scope in the same way; return how many. Raise the same errors."""
        return await self._learn(scope, _RECORDS)

    async def _learn(self, scope: Scope, stream: _Stream) -> int:
        keys, script = self._keys.scope(scope), self._scripts["learn_vectors"]
        fingerprint = fingerprint_of(self._embedder, stream.recipe)
        learned = 0
        while True:
            meta, newest = await self._client.pipeline(
                [
                    ("HMGET", keys.meta, "epoch", "erasure", stream.fingerprint_field),
                    ("XREVRANGE", stream.vectors(keys), "+", "-", "COUNT", 1),
                ]
            )
            epoch, erasure = version_of(meta)
            request = {
                "stream": stream.name,
                "epoch": epoch,
                "erasure": erasure,
                "fingerprint": fingerprint,
                "ttl_s": self._ttl_s,
            }
            is_other = meta[2] != fingerprint.encode()
            last = seq_of(newest[0][0]) if newest and not is_other else 0
            batch = await self._batch(keys, last, stream)
            if not batch:
                return learned
            if is_other:
                await script(keys.all, request)
                continue
            rows = await self._embedder.embed([text for _, text in batch])
            request |= {"after": last, "ids": [entry_id for entry_id, _ in batch]}
            if await script(keys.all, request, *map(packed, rows)) != b"ok":
                raise NotWritten(scope.tag)
            learned += len(batch)

    async def _batch(self, keys: ScopeKeys, last: int, stream: _Stream) -> list[tuple[int, str]]:
        """Return id and text of the next entries to embed."""
        while True:
            page: Command = ("XRANGE", stream.texts(keys), f"({last}-0", "+", "COUNT", _BATCH)
            bound: list[Command] = [("HGET", keys.meta, stream.until)] if stream.until else []
            entries, *until = await self._client.pipeline([page, *bound])
            texts = ((seq_of(entry), stream.text_of(entry, fields)) for entry, fields in entries)
            end = int(until[0]) if any(until) else inf
            batch = [(entry_id, text) for entry_id, text in texts if text and entry_id <= end]
            if batch or not entries:
                return batch
            last = seq_of(entries[-1][0])
