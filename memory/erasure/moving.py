"""Moves a fact between all topics of a private chat and the one topic in which it was said."""

from dataclasses import replace
from time import time

from memory.behaviors.statements import same_facts
from memory.erasure.correcting import Correcting, wordings_of
from memory.scopes.changes import Revision, Write
from memory.scopes.entries import Fact
from memory.scopes.fact_lists import place_of
from memory.scopes.provenance import chain_of
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.store.keys import Scope


class Moving:
    """Moves facts of private chats that have topics."""

    def __init__(self, scopes: Scopes, correcting: Correcting) -> None:
        self._scopes = scopes
        self._correcting = correcting

    async def move_fact(self, topic: Scope, fact_id: int) -> bool:
        """Move a fact from one scope to the other; return False if that is not possible.

        `fact_id` is its shown id. As after an edit, its messages are taken out of recall, so that
        nothing learns it from them again. After a crash both scopes may have the fact. A repeat
        then finishes the move.
        """
        source, stored_id = place_of(topic, fact_id)
        target = topic.facts_scope if source == topic else topic
        fact: Fact | None = None

        async def copy(there: ScopeMemory) -> Write | None:
            # The target was read first. If a message is erased after that, the write is refused.
            nonlocal fact
            facts = await self._scopes.read(source)
            here = facts if source == topic else there
            found = facts.record(stored_id)
            fact = found if isinstance(found, Fact) and is_movable(here, facts, found) else None
            seqs = [each.seq for each in fact.sources] if fact else []
            if fact is None or not await self._correcting.senders(topic, seqs):
                fact = None
                return None
            if same_facts(fact.text, (each for each in there.facts if each.is_current)):
                return None
            older = [facts.record(id_) for id_ in chain_of(facts, fact) if id_ != fact.id]
            former = wordings_of([each for each in older if isinstance(each, Fact)], time())
            # Former ids mean nothing in the other scope.
            replaced = tuple(replace(each, id=0) for each in (*former, *fact.replaced))
            moved = replace(fact, id=0, replaced=replaced)
            return Write([moved], learned_from=None if target == topic else here)

        async def remove(facts: ScopeMemory) -> Revision | None:
            found = facts.record(stored_id)
            return Revision(records=chain_of(facts, found)) if isinstance(found, Fact) else None

        if not topic.is_private or not topic.topic_id:
            return False
        await self._scopes.update(target, copy)
        if fact is None:
            return False
        await self._correcting.take_out_of_recall(topic, [each.seq for each in fact.sources])
        await self._scopes.update(source, remove)
        return True


def is_movable(here: ScopeMemory, facts: ScopeMemory, fact: Fact) -> bool:
    """Return whether a fact rests on messages of this one topic alone, since its last clear.

    So everything that erases these messages finds the fact in either scope. `facts` is the scope
    that has the fact.
    """
    if not here.scope.is_private or not here.scope.topic_id or not fact.is_current:
        return False
    chain = [facts.record(id_) for id_ in chain_of(facts, fact)]
    known = [each for each in chain if isinstance(each, Fact)]
    sources = [source for each in known for source in each.sources]
    sources += [source for each in known for one in each.replaced for source in one.sources]
    return all(each.tag == here.scope.tag and each.epoch >= here.epoch for each in sources)
