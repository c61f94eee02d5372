"""Facts that only one topic of a private chat knows, beside those of the person.

They are stored in the topic's own conversation. Both scopes count their records from 1, so people,
models and buttons know a topic's fact by the negative of its stored id. This is its shown id.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from memory.scopes.amendments import Again, Ended
from memory.scopes.entries import Fact, ScopeEntry
from memory.scopes.scope_memory import ScopeMemory
from memory.store.keys import Scope


def fact_scopes(facts: ScopeMemory, here: ScopeMemory) -> list[ScopeMemory]:
    """Return the scopes whose facts count in a conversation, the topic's own one last.

    `facts` is the scope of `Scope.facts_scope`, `here` the conversation. In groups both are one.
    """
    return [facts] if facts.scope == here.scope else [facts, here]


def known_facts(facts: ScopeMemory, here: ScopeMemory) -> list[Fact]:
    """Return all facts that count in a conversation, also ended ones, with their shown ids."""
    return [shown(each.scope, fact) for each in fact_scopes(facts, here) for fact in each.facts]


def shown(scope: Scope, fact: Fact) -> Fact:
    """Return a fact of a scope with its shown id."""
    if not scope.is_private:
        return fact
    return replace(fact, id=-fact.id, replaced_by=-fact.replaced_by)


def place_of(conversation: Scope, fact_id: int) -> tuple[Scope, int]:
    """Return the scope of a fact and its stored id; `fact_id` is its shown id."""
    if fact_id < 0 and conversation.is_private:
        return conversation, -fact_id
    return conversation.facts_scope, fact_id


def split_by_place(entries: Sequence[ScopeEntry]) -> tuple[list[ScopeEntry], list[ScopeEntry]]:
    """Return what to write to the scope of facts, and what to the topic, with stored ids.

    A fact that replaces a fact of the topic goes there, too.
    """
    general: list[ScopeEntry] = []
    topic: list[ScopeEntry] = []
    for entry, following in zip_longest(entries, entries[1:]):
        amends = following if isinstance(entry, Fact) and isinstance(following, Ended) else entry
        if not isinstance(amends, Again | Ended) or amends.fact_id > 0:
            general.append(entry)
        elif isinstance(entry, Again | Ended):
            topic.append(replace(entry, fact_id=-entry.fact_id))
        else:
            topic.append(entry)
    return general, topic
