"""What one step changes in a scope, what an erasure leaves of it, and the counts of what it took.

A `Write` adds what was learned. A `Revision` erases parts of the scope and all that rests on them;
`without` decides what that is. Each is carried out by `Scopes`, completely or not at all.
"""

from collections.abc import Collection, Sequence
from dataclasses import astuple, dataclass, replace
from operator import add

from memory.message import Message
from memory.scopes.entries import Fact, Record, ScopeEntry
from memory.scopes.fields import Field, read_field
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.sources import Erased


class NotWritten(Exception):
    """Raised when a change was refused because the scope has changed since it was read."""


@dataclass(frozen=True, slots=True)
class Write:
    """What one step of learning adds; refused if one of its fields has changed since the read."""

    entries: Sequence[ScopeEntry] = ()
    fields: Sequence[Field] = ()  # with their new values
    removed: Collection[str] = ()  # names of fields
    learned_from: ScopeMemory | None = None  # the conversation it rests on


@dataclass(frozen=True, slots=True)
class Revision:
    """What an erasure takes from a scope, and what replaces it."""

    messages: Sequence[int] = ()  # sequences
    records: Sequence[int] = ()  # ids of records and of the entries that amend them
    instead: Sequence[Record] = ()  # records in their new form
    fields: Sequence[Field] = ()  # with their new values
    removed: Collection[str] = ()  # names of fields
    added: Sequence[ScopeEntry] = ()
    said: int | None = None  # the newest message that was read for it: refused if another followed
    receipt_id: str = ""  # a repeat within the hour changes nothing and returns the same receipt
    # A message that keeps its place and gets this text. Its vector and all later ones go, because
    # vectors have no gaps.
    rewritten: Message | None = None
    entry: tuple[bytes, bytes] | None = None  # a waiting entry of the mailbox, and its new form


def new_values(change: Write | Revision) -> dict[str, str]:
    """Return the new values of all changed fields by name, "" for removed ones."""
    return {field.name: field.stored for field in change.fields} | dict.fromkeys(change.removed, "")


def together(writes: Sequence[Write]) -> Write:
    """Return writes to one scope as one step; all rest on the same conversation."""
    return Write(
        [entry for write in writes for entry in write.entries],
        [field for write in writes for field in write.fields],
        [name for write in writes for name in write.removed],
        writes[0].learned_from,
    )


@dataclass(frozen=True, slots=True)
class Receipt:
    """Counts of what was erased. `left` counts messages that came after the confirmation."""

    messages: int = 0
    vectors: int = 0
    waiting: int = 0
    left: int = 0
    records: int = 0

    @classmethod
    def of(cls, written: str | bytes) -> "Receipt":
        """Read the form in which scripts store it."""
        text = written.decode() if isinstance(written, bytes) else written
        return cls(*map(int, text.split(",")))

    @property
    def written(self) -> str:
        """The form in which scripts store it."""
        return ",".join(map(str, astuple(self)))

    def __add__(self, other: "Receipt") -> "Receipt":
        return Receipt(*map(add, astuple(self), astuple(other)))


def without(scope_memory: ScopeMemory, erased: Erased) -> Revision:
    """Return what an erasure leaves of a scope's fields and records; messages are not touched.

    Each field and record applies its own rule. A field that this version does not know is erased.
    If a fact is erased, the fact that it had replaced is current again.
    """
    is_here = erased.tag == scope_memory.scope.tag
    erased = replace(erased, seqs=frozenset(erased.seqs), is_here=is_here)
    changed: list[Field] = []
    removed: list[str] = []
    for name, stored in scope_memory.fields.items():
        field = read_field(name, stored)
        left = field.without(erased) if field else None
        if left is None:
            removed.append(name)
        elif left != field:
            changed.append(left)
    erased = replace(erased, fields=frozenset(removed))
    entries: list[int] = []
    instead: dict[int, Record] = {}
    lost: set[int] = set()
    for record in scope_memory.of_kind(Record):
        kept = record.without(erased)
        if kept is None:
            lost.add(record.id)
            entries += scope_memory.entries_of(record)
        elif kept != record:
            instead[record.id] = kept
    for fact in scope_memory.facts:
        if fact.replaced_by in lost and fact.id not in lost:
            known = instead.get(fact.id)
            fact_left = known if isinstance(known, Fact) else fact
            instead[fact.id] = replace(fact_left, ended_at=0, replaced_by=0)
    for record in instead.values():
        entries += scope_memory.entries_of(record)[1:]
    return Revision(records=entries, instead=[*instead.values()], fields=changed, removed=removed)


def facts_behind(scope_memory: ScopeMemory, fact: Fact) -> list[Fact]:
    """Return a fact and all facts that it replaced, also indirectly; there may be thousands."""
    chain = [fact]
    for each in chain:  # which grows meanwhile
        chain += scope_memory.replaced_by(each)
    return chain


def chain_of(scope_memory: ScopeMemory, fact: Fact) -> list[int]:
    """Return the entry ids of a fact and of all facts that it replaced."""
    chain = facts_behind(scope_memory, fact)
    return [id_ for each in chain for id_ in scope_memory.entries_of(each)]


def senders_of(scope_memory: ScopeMemory, fact: Fact) -> set[int]:
    """Return the senders of all sources of a fact and of the facts that it replaced."""
    chain = facts_behind(scope_memory, fact)
    return {source.sender_id for each in chain for source in each.sources}


def former_wordings(scope_memory: ScopeMemory, fact: Fact) -> list[tuple[str, float]]:
    """Return what a fact said before or replaced, oldest first, each with the time of its end."""
    facts = facts_behind(scope_memory, fact)
    former = [(each.text, each.ended_at) for each in facts[1:]]
    former += [(each.text, each.replaced_at) for one in facts for each in one.replaced]
    return sorted(former, key=lambda each: each[1])
