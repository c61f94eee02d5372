"""Recalled messages say what came after them."""

from memory.scopes.changes import facts_behind, former_wordings, without
from memory.scopes.entries import Again, Ended, Fact, Synopsis
from memory.scopes.fact_lists import with_facts
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.sources import Erased, Source
from memory.search.message_search import Later, SearchResult
from memory.store.keys import Scope
from tests.memory.behaviors.batches import ANNA, DAY, NOW, PRIVATE, said, scope_memory
from tests.work import calls

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


def often_changed(times: int) -> ScopeMemory:
    """Return the facts of somebody who says every day what they weigh."""
    days = range(1, times + 1)
    facts = (fact(f"Weighs {day} kilos.", day) for day in days)
    ends = (Ended(day, NOW + (day + 1) * DAY, day + 1) for day in days[:-1])
    return scope_memory(*facts, *ends, scope=PERSON)


def test_a_fact_may_have_replaced_thousands() -> None:
    """Python would end a recursion after a thousand of them."""
    facts = often_changed(3_000)
    newest = facts.facts[-1]
    assert [each.id for each in facts_behind(facts, newest)] == [*range(3_000, 0, -1)]
    assert former_wordings(facts, newest)[0] == ("Weighs 1 kilos.", NOW + 2 * DAY)
    [result] = with_facts(found(1), facts, scope_memory())
    assert result.later == {1: (Later(NOW + 2 * DAY, "Weighs 3000 kilos.", 3_000),)}


def test_the_history_of_all_facts_takes_linear_time() -> None:
    def histories(count: int) -> int:
        facts = scope_memory(*(fact(f"Likes {number}.", number) for number in range(count)))
        return calls(lambda: [facts_behind(facts, each) for each in facts.facts])

    assert histories(400) < 2.5 * histories(200)


def test_a_fact_that_is_said_every_day_keeps_all_its_sources() -> None:
    """What an erasure and the deletion of a fact take, they find by its sources."""
    again = [Again(1, Source(PRIVATE.tag, seq, 3, ANNA.id), NOW + seq) for seq in range(2, 100)]
    facts = scope_memory(fact("Likes tea.", 1), *again, scope=PERSON)
    [tea] = facts.facts
    assert [each.seq for each in tea.sources] == [*range(1, 100)]
    left = without(facts, Erased(PRIVATE.tag, [20]))
    assert [len(each.sources) for each in left.instead if isinstance(each, Fact)] == [98]


def test_what_an_erasure_takes_of_synopses_takes_linear_time() -> None:
    """Somebody may have said thousands of messages in a group of thousands of sessions."""

    def session(first: int) -> Synopsis:
        return Synopsis(0, "boats", "", "", "", "", "", "", 1, 2, first, first + 3, PRIVATE.tag)

    def erasing(count: int) -> int:
        here = scope_memory(*map(session, range(1, 4 * count, 4)))
        theirs = Erased(PRIVATE.tag, [seq for seq in range(4 * count) if seq % 8 == 1])
        assert len(without(here, theirs).records) == count // 2
        return calls(lambda: without(here, theirs))

    assert erasing(400) < 2.5 * erasing(200)
