"""What an index finds depends on what it holds, not on how it was built."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memory.search.arrays import Floats
from memory.search.hybrid import HybridIndex
from memory.search.message_search import IndexRecord
from tests.memory.search.conversations import (
    Said,
    conversations,
    index_of,
    mask,
    questions,
    rows,
    unit,
    vector_of,
    vectors,
)


@given(conversations())
def test_rows_are_numbered_in_the_order_of_records(said: Said) -> None:
    index = index_of(*said)
    assert index.ids.tolist() == list(range(len(said[0])))
    assert len(index) == len(said[0])
    assert len(index.stored_from(0)) == sum(each is not None for each in said[1])


@given(conversations(), questions, vectors)
def test_hits_are_sorted_unique_and_at_most_k(said: Said, question: str, vector: Floats) -> None:
    index = index_of(*said)
    everything = index.search(question, vector, len(index))
    found = [hit.score for hit in everything]
    assert found == sorted(found, reverse=True)
    assert len(set(rows(everything))) == len(everything)
    assert index.search(question, vector, 3) == everything[:3]
    assert index.search(question, vector, 0) == []


@given(conversations(), st.data(), questions, vectors)
def test_rows_outside_the_mask_are_not_returned_but_still_boost_neighbors(
    said: Said, data: st.DataObject, question: str, vector: Floats
) -> None:
    index = index_of(*said)
    allowed = data.draw(st.sets(st.integers(0, len(index) - 1)))
    everything = index.search(question, vector, 99)
    within = index.search(question, vector, 99, mask(len(index), allowed))
    assert within == [hit for hit in everything if hit.row in allowed]


def test_an_empty_index_finds_nothing() -> None:
    assert HybridIndex().search("lantern", vector_of(1), 5) == []
    assert HybridIndex().related([], 5) == []


def test_a_neighbor_in_the_session_is_found_by_the_words_before_it() -> None:
    index = index_of(
        [
            IndexRecord("The lantern fell into the harbour", 0),
            IndexRecord("And then?", 0),
            IndexRecord("Nothing, it sank", 0),
            IndexRecord("We had pepper soup", 1),
        ]
    )
    hits = {hit.row: hit for hit in index.search("lantern harbour?", None, 9)}
    assert not hits[0].is_boosted
    assert hits[1].is_boosted
    assert hits[2].lexical > 0.0
    assert 3 not in hits


def test_a_person_ranks_before_the_assistant_and_a_statement_before_a_question() -> None:
    repeated = IndexRecord("So your violin is from Cremona, how nice", 0, by_assistant=True)
    index = index_of([repeated, IndexRecord("My violin is from Cremona", 1)])
    assert rows(index.search("violin cremona", None, 2)) == [1, 0]
    index = index_of([IndexRecord("Where is my violin?", 0), IndexRecord("There is my violin", 1)])
    assert rows(index.search("Where is my violin?", None, 2)) == [1, 0]


def test_nbytes_grows_with_the_index() -> None:
    assert index_of([IndexRecord("lantern", 0)], [vector_of(1)]).nbytes > HybridIndex().nbytes


PLANTED_WIDTH = 64
FIRST, TANGENT = 7, 20


def planted() -> tuple[HybridIndex, Floats]:
    """Return an index of 40 records; the related one resembles only the answer."""
    random = np.random.default_rng(1)
    rows_of = random.standard_normal((40, PLANTED_WIDTH)).astype(np.float32)
    question = random.standard_normal(PLANTED_WIDTH).astype(np.float32)
    rows_of[FIRST] = question + 0.5 * rows_of[FIRST]
    rows_of[TANGENT] = rows_of[FIRST] - 0.9 * question + 0.3 * rows_of[TANGENT]
    records = [IndexRecord(f"filler{number}", number) for number in range(40)]
    return index_of(records, [*map(unit, rows_of)]), unit(question)


def test_a_related_record_follows_the_direct_hits_unless_it_is_outside_the_mask() -> None:
    index, question = planted()
    direct = index.search("filler7", question, 3)
    assert rows(direct)[0] == FIRST
    assert TANGENT not in rows(direct)
    assert rows(index.related(direct, 3))[0] == TANGENT
    allowed = mask(len(index), set(range(40)) - {TANGENT})
    assert TANGENT not in rows(index.related(direct, 3, allowed))


@given(conversations(), questions, vectors)
def test_related_records_are_no_direct_hits(said: Said, question: str, vector: Floats) -> None:
    index = index_of(*said)
    direct = index.search(question, vector, 4)
    assert not set(rows(direct)) & set(rows(index.related(direct, 9)))


def test_a_hit_without_a_vector_has_no_related_records() -> None:
    index = index_of([IndexRecord("lantern", 0), IndexRecord("kettle", 1)], [None, vector_of(1)])
    assert index.related(index.search("lantern", None, 1), 3) == []
