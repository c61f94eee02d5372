"""`Notebook`: what was learned of one scope, as this process has read it, to list and to search.

Reading and writing the store is `notebooks`' business.
"""

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from memory.scopes.delta import Notes
from memory.scopes.entries import (
    Again,
    Chunk,
    Ended,
    Entry,
    Fact,
    Hidden,
    Record,
    Synopsis,
    read,
)
from memory.scopes.fields import F, State, StateUntrusted, Watermark, fields_of, name_of
from memory.scopes.log import PackedRows
from memory.search.embeddings import Vectors
from memory.search.hybrid import HybridIndex
from memory.search.hybrid import Record as IndexRecord
from memory.store.keys import Scope

RECIPE = "date title words"
"""Part of the stamp of stored vectors: another recipe means embedding anew."""

_RECORD_OVERHEAD_BYTES = 600

R = TypeVar("R", Fact, Synopsis, Chunk)


@dataclass(frozen=True, slots=True)
class Found(Generic[R]):
    """A record that a search found; `is_related` when it resembles the best hit (re-query)."""

    record: R
    score: float
    is_related: bool = False


class _Shelf:
    """The index of one kind of record; row n is `ids[n]`."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.rows: dict[int, int] = {}
        self.index = HybridIndex()

    def add(self, record_id: int, text: str, group: int) -> None:
        self.rows[record_id] = len(self.ids)
        self.ids.append(record_id)
        self.index.append(IndexRecord(text, group))


class ScopeMemory:
    """State, watermarks and records of a scope, valid for one (epoch, erasure) of it."""

    def __init__(self, scope: Scope, version: tuple[str, str]) -> None:
        self.scope = scope
        self.version = version
        self.vector_fingerprint = ""
        self.generation = 0
        self.fields: Mapping[str, str] = {}
        self.newest = 0
        self.length = self.vectors_length = -1
        self._records: dict[int, Record] = {}
        self._hidden: set[int] = set()
        self._amendments: dict[int, list[int]] = {}
        self._shelves: dict[type[Record], _Shelf] = {}
        self._unindexed: list[Record] = []
        self.vectors = PackedRows()
        self._entries = 0
        self._text_bytes = 0

    @property
    def state(self) -> str:
        """The running state as JSON; "" where there is none."""
        return self.fields.get(State.PREFIX, "")

    @property
    def is_state_untrusted(self) -> bool:
        """Whether untrusted text went into the running state, now or before."""
        return bool(self.state and self.fields.get(StateUntrusted.PREFIX))

    @property
    def epoch(self) -> int:
        """The conversation's epoch for other scopes, which may outlive it: it never begins anew."""
        return self.generation + int(self.version[0] or 0)

    @property
    def is_whole(self) -> bool:
        """Whether nothing of what is stored is missing here."""
        return self._entries == self.length and self.vectors.count == self.vectors_length

    @property
    def nbytes(self) -> int:
        """Roughly the bytes held."""
        indexes = sum(shelf.index.nbytes for shelf in self._shelves.values())
        return self._text_bytes + indexes + self.vectors.nbytes

    @property
    def records(self) -> list[Record]:
        """All facts, synopses and passages, oldest first."""
        return list(self._records.values())

    @property
    def facts(self) -> list[Fact]:
        """All facts, oldest first, ended ones included."""
        return [record for record in self._records.values() if isinstance(record, Fact)]

    @property
    def synopses(self) -> list[Synopsis]:
        """All synopses, oldest first."""
        return [record for record in self._records.values() if isinstance(record, Synopsis)]

    @property
    def chunks(self) -> list[Chunk]:
        """All chunks of documents, in their order."""
        return [record for record in self._records.values() if isinstance(record, Chunk)]

    @property
    def hidden(self) -> Collection[int]:
        """Sequences of messages that are not to be recalled."""
        return self._hidden

    def record(self, record_id: int) -> Record | None:
        """Return one record, nothing when there is none of this id."""
        return self._records.get(record_id)

    def entries_of(self, record: Record) -> list[int]:
        """Return the ids of a record and of all that was written about it later."""
        return [record.id, *self._amendments.get(record.id, ())]

    def get(self, kind: type[F], key: str = "") -> F | None:
        """Return the field of this kind and key, None if there is none."""
        stored = self.fields.get(name_of(kind, key))
        return None if stored is None else kind.read(key, stored)

    def all(self, kind: type[F]) -> list[F]:
        """Return all fields of a kind."""
        return fields_of(kind, self.fields)

    def watermark(self, learner: str) -> int:
        """Return the sequence up to which a behavior has learned."""
        found = self.get(Watermark, learner)
        return found.seq if found else 0

    def search(self, kind: type[R], text: str, vector: Vectors | None, k: int) -> list[Found[R]]:
        """Return up to `k` records that `text` is about, best first, then what resembles the first.

        Facts that have ended are not found. `vector` is that of `text`, or missing.
        """
        self._bring_up_to_date()
        shelf = self._shelves.get(kind)
        if shelf is None or not text.strip():
            return []
        allowed = np.fromiter((self._is_found(i) for i in shelf.ids), np.bool_, len(shelf.ids))
        try:
            hits = shelf.index.search(text, vector, k, allowed)
        except ValueError:  # the model changed its width; until all is embedded anew, words serve
            hits = shelf.index.search(text, None, k, allowed)
        related = shelf.index.related(hits, k, allowed)
        found = [(hit, False) for hit in hits] + [(hit, True) for hit in related]
        records = ((self._records[shelf.ids[hit.row]], hit, again) for hit, again in found)
        return [
            Found(record, hit.score, again)
            for record, hit, again in records
            if isinstance(record, kind)
        ]

    def add(self, notes: Notes) -> None:
        """Join on what was read, whose rows fit."""
        self.fields = notes.fields
        self.length, self.vectors_length = notes.length, notes.vectors_length
        for entry_id, kind, content in notes.entries:
            if entry_id > self.newest:
                self._fold(entry_id, read(entry_id, kind, content))
                self.newest = entry_id
                self._entries += 1
                self._text_bytes += sys.getsizeof(content) + _RECORD_OVERHEAD_BYTES
        self.vectors.extend(notes.vectors)

    def _fold(self, entry_id: int, entry: Entry | None) -> None:
        if isinstance(entry, Again | Ended):
            self._amendments.setdefault(entry.fact_id, []).append(entry_id)
        match entry:
            case Record():
                self._records[entry.id] = entry
                self._unindexed.append(entry)
            case Again(fact_id, source):
                fact = self._records.get(fact_id)
                if isinstance(fact, Fact) and source not in fact.sources:
                    self._records[fact_id] = replace(fact, sources=(*fact.sources, source))
            case Ended(fact_id, at, by):
                fact = self._records.get(fact_id)
                if isinstance(fact, Fact):
                    self._records[fact_id] = replace(fact, ended_at=at, replaced_by=by)
            case Hidden(seq, hidden):
                self._hidden.add(seq) if hidden else self._hidden.discard(seq)

    def _is_found(self, record_id: int) -> bool:
        record = self._records[record_id]
        return not isinstance(record, Fact) or record.is_current

    def _bring_up_to_date(self) -> None:
        for record in self._unindexed:
            shelf = self._shelves.setdefault(type(record), _Shelf())
            shelf.add(record.id, record.indexed_text, record.group)
        self._unindexed.clear()
        for record_id, vector in self.vectors.unpacked():
            embedded = self._records.get(record_id)
            if embedded is not None:
                shelf = self._shelves[type(embedded)]
                shelf.index.put_vector(shelf.rows[record_id], vector)
        self.vectors.clear()
