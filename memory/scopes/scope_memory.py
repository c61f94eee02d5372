"""`ScopeMemory`: all that is remembered in one scope, as this process has read it.

It lists and searches records. `Scopes` reads and writes the store.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from time import time
from typing import TYPE_CHECKING, Generic, TypeVar
from zoneinfo import ZoneInfo

from memory.scopes.entries import Amendment, Fact, Hidden, Record, Synopsis, read
from memory.scopes.fields import (
    F,
    PersonsZone,
    State,
    StateUntrusted,
    ToolWrites,
    Watermark,
    name_of,
)
from memory.scopes.log import Columns, Cursor, Delta, StreamDelta
from memory.scopes.sources import Source
from memory.scopes.stream import EmbeddedStream, MessageStream
from memory.scopes.writes import ToolWrite
from memory.search.embeddings import Vectors, index_class
from memory.store.keys import Scope

if TYPE_CHECKING:
    from memory.search.hybrid import HybridIndex

RECIPE = "title words"
"""Part of the embedding fingerprint: with another recipe, records are embedded again."""

_RECORD_OVERHEAD_BYTES = 600
_AT_ONCE = 100  # records that are indexed in one go

R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True)
class Found(Generic[R]):
    """A record that a search found; `is_related` if it only resembles the best hit (re-query)."""

    record: R
    score: float
    is_related: bool = False


class ScopeMemory(EmbeddedStream):
    """All that is remembered in one scope: its fields, its records and its messages.

    The object itself is the stream of the records; `messages` is the stream of the messages. All of
    it is valid for one version (epoch, erasure) and one generation of the scope.
    """

    def __init__(
        self,
        scope: Scope,
        version: tuple[str, str] = ("", ""),
        generation: int = 0,
        messages: MessageStream | None = None,
    ) -> None:
        super().__init__()
        self.scope, self.version = scope, version
        self.generation = generation
        self.messages = messages or MessageStream()
        self.fields: Mapping[str, str] = {}
        self.is_off = False  # memory was off at the last read
        self.is_lost = False  # Redis may have lost what was read (`Scopes.drop_lost`)
        self.revision = 0  # of the fields, the records and their vectors
        self.renewed_at = 0.0  # when this process last renewed the scope's expiry (Unix seconds)
        self._records: dict[int, Record] = {}
        # Sequences of messages that searches must not find, and the reasons (`Hidden.because`).
        self.hidden: dict[int, set[int]] = {}
        self._amendments: dict[int, list[int]] = {}
        self._replaced: dict[int, set[int]] = {}  # by a fact: the ids of those that it replaced
        self._by_kind: dict[type[Record], HybridIndex] = {}
        self._unindexed: list[Record] = []

    @property
    def cursor(self) -> Cursor:
        """The newest entries read so far; a read returns only newer ones."""
        said = self.messages
        records = (self.newest, self.newest_vector)
        revision = self.revision if self.is_whole else 0
        return Cursor(said.newest, said.newest_vector, *records, self.version, revision)

    @property
    def nbytes(self) -> int:
        """Roughly the bytes in memory."""
        indexes = sum(each.nbytes for each in self._by_kind.values())
        return super().nbytes + indexes + self.messages.nbytes

    @property
    def state(self) -> str:
        """The running state as JSON; "" if there is none."""
        return self.fields.get(State.PREFIX, "")

    @property
    def is_state_untrusted(self) -> bool:
        """Whether untrusted text has ever gone into the running state."""
        return bool(self.state and self.fields.get(StateUntrusted.PREFIX))

    @property
    def zone(self) -> str:
        """The IANA name of a person's time zone; "" if it is not known, and in groups."""
        name = self.fields.get(PersonsZone.PREFIX, "")
        with suppress(LookupError, ValueError, OSError):  # a backup may have any name
            return ZoneInfo(name).key
        return ""

    @property
    def source_epoch(self) -> int:
        """What a `Source` names: it grows even if the conversation starts over."""
        return self.generation + int(self.version[0] or 0)

    def seqs_of(self, sources: Iterable[Source]) -> list[int]:
        """Return the sequences of the sources that are messages of this conversation."""
        return [each.seq for each in sources if each.is_of(self.scope.tag, self.generation)]

    @property
    def facts(self) -> list[Fact]:
        """All facts, oldest first, including ended ones."""
        return self.of_kind(Fact)

    @property
    def synopses(self) -> list[Synopsis]:
        """All synopses, oldest first."""
        return self.of_kind(Synopsis)

    def of_kind(self, kind: type[R]) -> list[R]:
        """Return all records of a kind, in the order in which they were stored."""
        return [record for record in self._records.values() if isinstance(record, kind)]

    def record(self, record_id: int) -> Record | None:
        """Return one record, None if there is no record with this id."""
        return self._records.get(record_id)

    def entries_of(self, record: Record) -> list[int]:
        """Return the ids of a record and of the entries that amend it."""
        return [record.id, *self._amendments.get(record.id, ())]

    def replaced_by(self, fact: Fact) -> list[Fact]:
        """Return the older facts that this one replaced."""
        found = map(self._records.get, sorted(self._replaced.get(fact.id, ())))
        facts = [each for each in found if isinstance(each, Fact)]
        # An end may have been changed since, and a wrong one must not lead in a circle.
        return [each for each in facts if each.replaced_by == fact.id and each.id < fact.id]

    def get(self, kind: type[F], key: str = "") -> F | None:
        """Return the field of this kind and key, None if there is none."""
        stored = self.fields.get(name_of(kind, key))
        return None if stored is None else kind.read(key, stored)

    def all(self, kind: type[F]) -> list[F]:
        """Return all fields of a kind."""
        named = ((name.partition(":"), stored) for name, stored in self.fields.items())
        of_kind = ((key, stored) for (prefix, _, key), stored in named if prefix == kind.PREFIX)
        return [kind.read(*each) for each in of_kind]

    @property
    def waiting_writes(self) -> list[ToolWrite]:
        """What tools want written and learning has not carried out yet."""
        return [write for each in self.all(ToolWrites) for write in each.writes]

    def watermark(self, learner: str) -> int:
        """Return the sequence up to which a behavior has learned."""
        found = self.get(Watermark, learner)
        return found.seq if found else 0

    def search(
        self, kind: type[R], text: str, vector: "Vectors | None", k: int, zone: tzinfo
    ) -> list[Found[R]]:
        """Return up to `k` records about `text`, best first, then those that resemble the best one.

        Ended facts are not found. `vector`: that of `text`, `(dim,)`, or None. Days are of `zone`.
        """
        for _ in self.indexing(zone):
            pass
        for record_ids, vectors in self.taken_vectors():
            for index in self._by_kind.values():  # which sets the vectors of its own records
                index.put_stored(record_ids, vectors)
        if kind not in self._by_kind or not text.strip():
            return []
        index = self._by_kind[kind]
        records = (self._records[each] for each in index.ids)
        is_found = (not isinstance(each, Fact) or each.is_current for each in records)
        allowed = index.flags(bytearray(is_found))
        hits = index.search(text, vector, k, allowed, datetime.fromtimestamp(time(), zone).date())
        related = index.related(hits, k, allowed)
        found = [(hit, False) for hit in hits] + [(hit, True) for hit in related]
        return [
            Found(record, hit.score, again)
            for hit, again in found
            if isinstance(record := self._records[index.ids[hit.row]], kind)
        ]

    def join(self, delta: Delta, max_entries: int) -> "ScopeMemory":
        """Return the scope with the entries that were read.

        It is this object, unless the scope has another version or other vectors now. At most
        `max_entries` messages were read. If there are as many, there may be a gap before them, so
        the messages before the gap are dropped.
        """
        if (self.version, self.generation) != (delta.version, delta.generation):
            return ScopeMemory(self.scope, delta.version, delta.generation).join(delta, max_entries)
        if delta.records is not None and not self.joins(delta.records):
            fresh = ScopeMemory(self.scope, delta.version, delta.generation, self.messages)
            return fresh.join(delta, max_entries)
        if delta.revision >= self.revision:  # else this answer was overtaken by a later one
            self.is_off = delta.is_off
            if delta.records is not None:
                self.fields, self.revision = delta.fields, delta.revision
                self.add(delta.records)
        if delta.messages is not None:
            has_gap = max_entries <= max(len(delta.messages.entries), len(delta.messages.vectors))
            if has_gap or not self.messages.joins(delta.messages):
                self.messages = MessageStream()
            self.messages.add(delta.messages)
            self.messages.session = delta.session
        return self

    def take_over(
        self, revision: int, stored: StreamDelta, fields: Mapping[str, str] | None = None
    ) -> bool:
        """Add what this process has stored; return false if others have changed something, too."""
        if revision == self.revision + 1 and self.is_whole and self.joins(stored):
            self.revision = revision
            values = {**self.fields, **(fields or {})}
            self.fields = {name: value for name, value in values.items() if value}
            length = self.length + len(stored.entries)
            vectors_length = self.vectors_length + len(stored.vectors)
            self.add(replace(stored, length=length, vectors_length=vectors_length))
        return self.revision >= revision and self.is_whole

    def _take(self, entries: Sequence[tuple[int, Columns]]) -> None:
        for entry_id, columns in entries:
            content = columns[b"j"]
            record: Record | None = None
            match entry := read(entry_id, columns[b"k"].decode(), content):
                case Record():
                    record = entry
                    self._unindexed.append(entry)
                case Amendment(fact_id=fact_id):
                    self._amendments.setdefault(fact_id, []).append(entry_id)
                    fact = self._records.get(fact_id)
                    if isinstance(fact, Fact):
                        record = entry.amended(fact)
                case Hidden(seq, hidden, because):
                    reasons = self.hidden.setdefault(seq, set())
                    if hidden:
                        reasons.add(because or seq)
                    else:  # an older release gives no reason, and means all of them
                        reasons -= {because} if because else {*reasons}
                    if not reasons:
                        del self.hidden[seq]
            if record is not None:
                self._records[record.id] = record
                if isinstance(record, Fact) and record.replaced_by:
                    self._replaced.setdefault(record.replaced_by, set()).add(record.id)
            self.newest = entry_id
            self.count += 1
            self._text_bytes += sys.getsizeof(content) + _RECORD_OVERHEAD_BYTES

    def indexing(self, zone: tzinfo) -> Iterator[None]:
        """Index new records, one step of some 10 ms at a time."""
        while self._unindexed:
            some, self._unindexed = self._unindexed[:_AT_ONCE], self._unindexed[_AT_ONCE:]
            for each in dict.fromkeys(map(type, some)):
                records = [record for record in some if type(record) is each]
                index = self._by_kind.setdefault(each, index_class()())
                index.extend([r.indexed(zone) for r in records], [r.id for r in records])
            yield
