"""Decides which records and fields of a scope are erased together with their sources.

The functions are pure and work on a scope as it was read. `Scopes` carries out the erasure.
"""

from dataclasses import replace

from memory.scopes.changes import Revision
from memory.scopes.entries import Fact, Record
from memory.scopes.fields import Field, read_field
from memory.scopes.passages import Document
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.sources import Erased


def without(scope_memory: ScopeMemory, erased: Erased) -> Revision:
    """Return what an erasure leaves of a scope's fields and records; messages are not touched.

    Each field and record applies its own rule. A field that this version does not know is erased.
    If a fact is erased, the fact that it had replaced is current again.
    """
    erased = replace(erased, is_here=erased.tag == scope_memory.scope.tag)
    changed: list[Field] = []
    removed: list[str] = []
    for name, stored in scope_memory.fields.items():
        field = read_field(name, stored)
        left = field.without(erased) if field else None
        if left is None:
            removed.append(name)
        elif left != field:
            changed.append(left)
    documents = {each.key for each in scope_memory.all(Document) if each.name in removed}
    entries, instead = _records_without(scope_memory, replace(erased, documents=documents))
    return Revision(records=entries, instead=instead, fields=changed, removed=removed)


def _records_without(scope_memory: ScopeMemory, erased: Erased) -> tuple[list[int], list[Record]]:
    """Return the ids of the entries that go, and the records that stay in another form."""
    entries: list[int] = []
    instead: dict[int, Record] = {}
    lost: set[int] = set()
    for record in scope_memory.records:
        left = record.without(erased)
        if left is None:
            lost.add(record.id)
            entries += scope_memory.entries_of(record)
        elif left != record:
            instead[record.id] = left
    for fact in scope_memory.facts:
        if fact.replaced_by in lost and fact.id not in lost:
            known = instead.get(fact.id)
            fact_left = known if isinstance(known, Fact) else fact
            instead[fact.id] = replace(fact_left, ended_at=0, replaced_by=0)
    for record in instead.values():
        entries += scope_memory.entries_of(record)[1:]
    return entries, list(instead.values())


def facts_behind(scope_memory: ScopeMemory, fact: Fact) -> list[Fact]:
    """Return a fact and all facts that it replaced, also indirectly."""
    chain = [fact]
    for older in scope_memory.facts:
        if older.replaced_by == fact.id and older.id < fact.id:
            chain += facts_behind(scope_memory, older)
    return chain


def chain_of(scope_memory: ScopeMemory, fact: Fact) -> list[int]:
    """Return the entry ids of a fact and of all facts that it replaced."""
    chain = facts_behind(scope_memory, fact)
    return [id_ for each in chain for id_ in scope_memory.entries_of(each)]


def senders_of(scope_memory: ScopeMemory, fact: Fact) -> set[int]:
    """Return the senders of all sources of a fact and of the facts that it replaced."""
    return {
        source.sender_id for each in facts_behind(scope_memory, fact) for source in each.sources
    }


def former_wordings(scope_memory: ScopeMemory, fact: Fact) -> list[tuple[str, float]]:
    """Return what a fact said before, and what it replaced, oldest first.

    Each text comes with the time of its end, in Unix seconds.
    """
    facts = facts_behind(scope_memory, fact)
    former = [(each.text, each.ended_at) for each in facts[1:]]
    former += [(each.text, each.replaced_at) for one in facts for each in one.replaced]
    return sorted(former, key=lambda each: each[1])
