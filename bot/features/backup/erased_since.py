"""Takes from a scope of a backup what was erased after the backup was made.

Nothing is read or written here. The rules are those by which an erasure itself decides
(`memory.scopes.changes`), so what rested on an erased message does not come back either.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import itemgetter

from bot.features.backup.erasures import ErasedParts, Erasures
from bot.features.backup.saving import STREAMS, Row, StoredScope
from memory.documents import Document
from memory.scopes.changes import Revision, new_values, without
from memory.scopes.entries import written
from memory.scopes.fields import STATE_LEARNER, State, Watermark
from memory.scopes.log import Delta, StreamDelta, message_of
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.sources import Erased
from memory.store.keys import Scope
from memory.work.item import WorkItem

_COUNTERS = ("epoch", "erasure", "generation", "next_seq", "next_record", "exchanges", "fence")
_MAX_COUNT = 2**53
_AFTER_ALL = 2.0**33
"""A time (Unix seconds) when all work is late, so that the rules of what repeats are read."""
_PERSON, _SEQ = 0, 1  # the first parts of a stored work item (`shared/work.lua`)


def left_of(stored: StoredScope, erasures: Erasures, tail: int, now: float) -> StoredScope | None:
    """Return what may be restored of a scope, None for nothing; `now` is in Unix seconds.

    If the running state is erased, it is learned again from the newest `tail` messages.
    """
    scope = Scope(stored.tag)
    generation = int(stored.meta.get(b"generation", 0))
    taken = erasures.of_scope(scope, stored.read_at, stored.versions, generation)
    owner = _owner(scope)
    if taken.is_cleared or (owner and erasures.forgotten_until(owner, stored.read_at)):
        return None
    left = stored
    for erased in _erasures_of(stored, scope, taken, erasures):
        left = _apply(left, without(_read(left), erased))
        if erased.tag == stored.tag:
            left = _without_messages(left, set(erased.seqs))
    gone = {name for name in left.learned if erasures.is_taken(scope, name.decode(), taken)}
    learned = {name: value for name, value in left.learned.items() if name not in gone}
    left = _with_hidden(_without_records(left, taken.records), taken)
    left = replace(left, learned=learned, work=_work(left, taken, erasures, now))
    if State.PREFIX.encode() in stored.learned and State.PREFIX.encode() not in left.learned:
        mark = Watermark(STATE_LEARNER, max(0, int(stored.meta.get(b"next_seq", 0)) - tail))
        marked = {**learned, mark.name.encode(): mark.stored.encode()}
        left = replace(left, learned=marked, is_due=True)
    return left


def read_through(stored: StoredScope) -> None:
    """Read a scope as a restore does; raise what that raises if it was edited."""
    for name in STREAMS:
        numbers = [number for number, _ in getattr(stored, name)]
        if numbers != sorted({*numbers}):
            raise ValueError(name)
    for name in _COUNTERS:
        if not 0 <= int(stored.meta.get(name.encode(), 0)) < _MAX_COUNT:
            raise ValueError(name)
    moved = stored.meta.get(b"moved_from")  # only groups move, and only to groups
    if moved and max(Scope(each).chat_id for each in (stored.tag, moved.decode())) >= 0:
        raise ValueError("moved_from")
    for seq, row in stored.log:
        message_of(seq, row)
    people_in(stored)
    left_of(stored, Erasures({}, {}), 0, _AFTER_ALL)


def people_in(stored: StoredScope) -> set[int]:
    """Return the people who wrote here, are the source of a memory, or wait for work."""
    found = {int(row[b"i"]) for _, row in stored.log}
    found |= {int(each.split(b"|")[_PERSON]) for each in stored.work.values()}
    here = _read(stored)
    found |= {source.sender_id for fact in here.facts for source in fact.sources}
    found |= {document.sender_id for document in here.all(Document)}
    return found - {0}


def _owner(scope: Scope) -> int:
    if scope.is_person:
        return int(scope.tag.partition(":")[2])
    return scope.chat_id if scope.is_private else 0


def _erasures_of(
    stored: StoredScope, scope: Scope, taken: ErasedParts, erasures: Erasures
) -> Iterator[Erased]:
    for generation, seqs in taken.messages.items():
        yield Erased(stored.tag, seqs, generation=generation)
    if not _owner(scope):
        for person in sorted(people_in(stored)):
            until = erasures.forgotten_until(person, stored.read_at)
            if until:
                seqs = _said_by(stored, person, until)
                oldest = stored.log[0][0] if stored.log else float("inf")
                yield Erased(stored.tag, seqs, oldest, sender_id=person, until=until)
    facts = _read(stored).facts
    sources = {source.tag for fact in facts for source in fact.sources}
    sources |= {source.tag for fact in facts for old in fact.replaced for source in old.sources}
    for tag in sorted(sources - {stored.tag}):
        there = erasures.of_scope(Scope(tag), stored.read_at)
        if there.epoch:
            yield Erased(tag, epoch=there.epoch)
        for generation, seqs in there.messages.items():
            yield Erased(tag, seqs, generation=generation)


def _said_by(stored: StoredScope, person: int, until: float) -> set[int]:
    """Return the sequences of a person's messages up to a time, and of their answers.

    As in an erasure, the turns of their tasks count whenever they began.
    """
    own = [row for _, row in stored.log if int(row[b"i"]) == person]
    exchanges = {row[b"x"] for row in own if float(row[b"s"]) <= until or row[b"m"][:1] == b"-"}
    return {seq for seq, row in stored.log if row[b"x"] in exchanges}


def _read(stored: StoredScope) -> ScopeMemory:
    epoch, erasure = map(str, stored.versions)
    fields = {name.decode(): value.decode() for name, value in stored.learned.items()}
    records = StreamDelta(stored.records, len(stored.records))
    delta = Delta((epoch, erasure), int(stored.meta.get(b"generation", 0)), 0, fields, records)
    return ScopeMemory(Scope(stored.tag)).join(delta, len(stored.records) + 1)


def _apply(stored: StoredScope, revision: Revision) -> StoredScope:
    learned = dict(stored.learned)
    for name, value in new_values(revision).items():
        learned.pop(name.encode(), None)
        if value:
            learned[name.encode()] = value.encode()
    instead = {record.id: written(record) for record in revision.instead}
    stored = replace(stored, learned=learned)
    stored = _without_records(stored, set(revision.records) - instead.keys())
    new = {id_: {b"k": kind.encode(), b"j": content} for id_, (kind, content) in instead.items()}
    records = [(number, new.get(number, row)) for number, row in stored.records]
    return replace(stored, records=records)


def _without_messages(stored: StoredScope, seqs: set[int]) -> StoredScope:
    asked = {row[b"x"] for seq, row in stored.log if seq in seqs and row[b"r"] == b"user"}
    gone = seqs | {seq for seq, row in stored.log if row[b"x"] in asked}
    work = {
        id_: value for id_, value in stored.work.items() if int(value.split(b"|")[_SEQ]) not in gone
    }
    log, vectors = _rows(stored.log, seqs), _rows(stored.vectors, seqs)
    return replace(stored, log=log, vectors=vectors, work=work)


def _without_records(stored: StoredScope, ids: set[int]) -> StoredScope:
    records, vectors = _rows(stored.records, ids), _rows(stored.record_vectors, ids)
    return replace(stored, records=records, record_vectors=vectors)


def _with_hidden(stored: StoredScope, taken: ErasedParts) -> StoredScope:
    """Take out of recall again what was taken out of it, in the order of then."""
    said = {seq for seq, _ in stored.log}
    since = sorted(taken.hidden, key=itemgetter(0))
    entries = [written(each) for _, each in since if each.seq in said]
    if not entries:
        return stored
    newest = max((number for number, _ in stored.records), default=0)
    first = max(newest, int(stored.meta.get(b"next_record", 0))) + 1
    added = [(first + at, {b"k": kind.encode(), b"j": j}) for at, (kind, j) in enumerate(entries)]
    numbered = {**stored.meta, b"next_record": b"%d" % (first + len(added) - 1)}
    return replace(stored, meta=numbered, records=[*stored.records, *added])


def _rows(rows: Sequence[Row], gone: set[int]) -> list[Row]:
    return [row for row in rows if row[0] not in gone]


def _work(
    stored: StoredScope, taken: ErasedParts, erasures: Erasures, now: float
) -> dict[bytes, bytes]:
    """Return the work items that are still wanted.

    An item whose time has passed is left out: most likely it was done, and a repeat would
    confuse. An item with a rule waits for its next time.
    """
    left: dict[bytes, bytes] = {}
    for id_, value in stored.work.items():
        item = WorkItem.of_stored(id_.decode(), value)
        is_forgotten = erasures.forgotten_until(item.person, stored.read_at)
        # One that waits for its button may have a rule and no time zone yet.
        if not item.is_open or is_forgotten or item.id in taken.work:
            continue
        if due := item.due if item.due > now else item.due_after(now):
            seq = int(value.split(b"|")[_SEQ])
            left[id_] = f"{item.person}|{seq}|{round(due * 1000)}|0|0||{item.body}".encode()
    return left
