"""What later facts say about earlier messages: what does not hold any more, and what does. Pure.

A message of which a fact was learned is marked once that fact has ended. No model is asked for it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from memory.scopes.entries import Fact
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.topic_facts import known_facts
from memory.search.message_search import Later, SearchResult


def with_facts(
    found: Iterable[SearchResult], facts: ScopeMemory, here: ScopeMemory
) -> list[SearchResult]:
    """Return results that know which facts rest on their messages, and which of these have ended.

    `facts` is the scope of `Scope.facts_scope`, `here` the conversation.
    """
    by_id = {fact.id: fact for fact in known_facts(facts, here)}
    resting: dict[int, list[Fact]] = {}
    for fact in by_id.values():
        for source in fact.sources:
            if source.tag == here.scope.tag:
                resting.setdefault(source.seq, []).append(fact)
    results = []
    for result in found:
        own = {each.seq: resting[each.seq] for each in result.messages if each.seq in resting}
        ended = {seq: [fact for fact in each if not fact.is_current] for seq, each in own.items()}
        later = {
            seq: tuple(_later(fact, by_id) for fact in each) for seq, each in ended.items() if each
        }
        # A message that also says something outdated is shown with its mark.
        told_by = {
            seq: tuple(fact.id for fact in each) for seq, each in own.items() if seq not in later
        }
        results.append(replace(result, later=later, told_by=told_by) if own else result)
    return results


def _later(fact: Fact, by_id: dict[int, Fact]) -> Later:
    """Return when a fact ended, and the last of the facts that replaced it."""
    seen: Sequence[int] = [fact.id]
    last = fact
    while last.replaced_by in by_id and last.replaced_by not in seen:
        last = by_id[last.replaced_by]
        seen = [*seen, last.id]
    return Later(fact.ended_at, "" if last is fact else last.text, 0 if last is fact else last.id)
