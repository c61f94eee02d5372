"""What rests on what: which records go when messages go, and what stays of the others.

Pure functions of a notebook; erasing is `notebooks`' business.
"""

from collections.abc import Callable, Collection
from dataclasses import replace

from memory.scopes.changes import Revision
from memory.scopes.records import Fact, Source
from memory.scopes.scope_memory import STATE_UNTRUSTED, ScopeMemory

STATE_WATERMARK = "w:running_state"
"""The field that says up to where the running state was learned."""


def facts_without(scope_memory: ScopeMemory, is_gone: Callable[[Source], bool]) -> Revision:
    """Return what becomes of the facts when sources are gone.

    A fact goes with its last source; with others left it stays on these. What a fact that goes had
    replaced holds again.
    """
    entries: list[int] = []
    instead: dict[int, Fact] = {}
    lost: set[int] = set()
    for fact in scope_memory.facts:
        left = tuple(source for source in fact.sources if not is_gone(source))
        if left == fact.sources:
            continue
        if left:
            instead[fact.id] = replace(fact, sources=left)
        else:
            lost.add(fact.id)
            entries += scope_memory.entries_of(fact)
    for fact in scope_memory.facts:
        if fact.replaced_by in lost and fact.id not in lost:
            known = instead.get(fact.id, fact)
            instead[fact.id] = replace(known, ended_at=0, replaced_by=0)
    for fact in instead.values():
        entries += scope_memory.entries_of(fact)[1:]
    return Revision(records=entries, instead=list(instead.values()))


def without_messages(
    scope_memory: ScopeMemory,
    seqs: Collection[int],
    is_gone: Callable[[Source], bool],
    oldest: float = 0,
) -> Revision:
    """Return what becomes of a conversation's notebook when messages of it go.

    Besides facts these are synopses that span one of them and what waits to be learned of them; of
    these also all that rest on a message before `oldest`. The running state does not know its
    sources, so it goes whole.
    """
    facts = facts_without(scope_memory, is_gone)
    spanning = [
        synopsis.id
        for synopsis in scope_memory.synopses
        if synopsis.first_seq < oldest
        or any(synopsis.first_seq <= seq <= synopsis.last_seq for seq in seqs)
    ]
    rests_on = {name: _rests_on(name, stored) for name, stored in scope_memory.fields.items()}
    fields = {name: "" for name, seq in rests_on.items() if seq in seqs or 0 < seq < oldest}
    if scope_memory.state:
        fields |= {"state": "", STATE_UNTRUSTED: ""}
    return replace(facts, messages=sorted(seqs), records=[*facts.records, *spanning], fields=fields)


def chain_of(scope_memory: ScopeMemory, fact: Fact) -> list[int]:
    """Return the entries of a fact and of all that it had replaced, directly or not."""
    entries = scope_memory.entries_of(fact)
    for older in scope_memory.facts:
        if older.replaced_by == fact.id and older.id < fact.id:
            entries += chain_of(scope_memory, older)
    return entries


def senders_of(scope_memory: ScopeMemory, fact: Fact) -> set[int]:
    """Return who said what a fact, and all that it had replaced, rests on."""
    return {
        source.sender_id
        for entry in chain_of(scope_memory, fact)
        if isinstance(record := scope_memory.record(entry), Fact)
        for source in record.sources
    }


def _rests_on(name: str, stored: str) -> int:
    """Return the sequence of the message that a field rests on, 0 for none.

    Digests (`d:`) are named by it; what tools want written (`t:`) and what is to be kept only if a
    person agrees (`p:`) begin with it, and so does what an operator's behavior keeps (`b:`).
    """
    match name[:2]:
        case "d:":
            return int(name[2:])
        case "t:" | "p:" | "b:":
            return int(stored.partition("|")[0])
        case _:
            return 0
