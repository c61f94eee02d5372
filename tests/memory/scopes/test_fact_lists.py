"""Recalled messages say what came after them."""

from memory.scopes.changes import without
from memory.scopes.entries import Again, Ended, Fact
from memory.scopes.fact_lists import with_facts
from memory.scopes.sources import Erased, Source
from memory.search.message_search import Later, SearchResult
from memory.store.keys import Scope
from tests.memory.behaviors.batches import ANNA, DAY, NOW, PRIVATE, said, scope_memory

PERSON = Scope.of_person(ANNA.id)


def fact(text: str, seq: int) -> Fact:
    return Fact(0, text, (Source(PRIVATE.tag, seq, 3, ANNA.id),), NOW + seq * DAY)


def found(*seqs: int) -> list[SearchResult]:
    return [SearchResult((said(seq, f"words {seq}"),), 1.0, seq) for seq in seqs]


def test_a_source_of_an_ended_fact_says_when_it_ended_and_what_holds_now() -> None:
    facts = scope_memory(
        fact("Lives in Graz.", 1),
        fact("Lives in Bern.", 2),
        Ended(1, NOW + 2 * DAY, 2),
        fact("Lives in Kiel.", 3),
        Ended(2, NOW + 3 * DAY, 4),
        scope=PERSON,
    )
    graz, bern, kiel, other = with_facts(found(1, 2, 3, 9), facts, scope_memory())
    assert graz.later == {1: (Later(NOW + 2 * DAY, "Lives in Kiel.", 4),)}
    assert bern.later == {2: (Later(NOW + 3 * DAY, "Lives in Kiel.", 4),)}
    assert (kiel.later, kiel.repeated_by) == ({}, {3: (4,)})
    assert (other.later, other.repeated_by) == ({}, {})


def test_a_fact_that_ended_without_another_gives_only_its_end() -> None:
    facts = scope_memory(fact("Sings in a choir.", 1), Ended(1, NOW), scope=PERSON)
    [result] = with_facts(found(1), facts, scope_memory())
    assert result.later == {1: (Later(NOW),)}


def test_facts_of_other_conversations_mark_nothing_here() -> None:
    elsewhere = Fact(0, "Lives in Graz.", (Source("c:7:5", 1, 3, ANNA.id),), NOW)
    [result] = with_facts(found(1), scope_memory(elsewhere, scope=PERSON), scope_memory())
    assert (result.later, result.repeated_by) == ({}, {})


def test_what_was_erased_marks_nothing_and_a_repeated_fact_loses_only_that_source() -> None:
    here = Source(PRIVATE.tag, 5, 3, ANNA.id)
    facts = scope_memory(
        fact("Lives in Graz.", 1),
        fact("Lives in Bern.", 2),
        Ended(1, NOW, 2),
        Again(2, here, NOW),
        scope=PERSON,
    )
    once = without(facts, Erased(PRIVATE.tag, [2], is_here=False))
    assert [each.sources for each in once.instead if isinstance(each, Fact)] == [(here,)]
    both = without(facts, Erased(PRIVATE.tag, [2, 5], is_here=False))
    assert 2 in both.records
    [graz] = [each for each in both.instead if isinstance(each, Fact)]
    assert graz.is_current
