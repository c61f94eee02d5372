"""What an index finds depends on what it holds, not on how it was built."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.scopes.log import packed
from memory.search.arrays import Floats, unpacked
from memory.search.hybrid import HybridIndex
from memory.search.message_search import IndexRecord
from memory.search.weights import Weights
from tests.memory.search.conversations import (
    WIDTH,
    conversations,
    index_of,
    mask,
    questions,
    rows,
    scores,
    unit,
    vector_of,
    vectors,
)


@given(conversations())
def test_rows_are_numbered_in_the_order_of_records(records: list[IndexRecord]) -> None:
    index = index_of(records)
    assert index.ids.tolist() == list(range(len(records)))
    assert len(index) == len(records)
    assert len(index.stored_from(0)) == sum(each.vector is not None for each in records)


@given(conversations(), questions, vectors)
def test_hits_are_sorted_unique_and_at_most_k(
    records: list[IndexRecord], question: str, vector: Floats
) -> None:
    index = index_of(records)
    everything = index.search(question, vector, len(records))
    found = [hit.score for hit in everything]
    assert found == sorted(found, reverse=True)
    assert len(set(rows(everything))) == len(everything)
    assert index.search(question, vector, 3) == everything[:3]
    assert index.search(question, vector, 0) == []


@given(conversations(), st.data(), questions, vectors)
def test_rows_outside_the_mask_are_not_returned_but_still_boost_neighbors(
    records: list[IndexRecord], data: st.DataObject, question: str, vector: Floats
) -> None:
    allowed = data.draw(st.sets(st.integers(0, len(records) - 1)))
    index = index_of(records)
    everything = index.search(question, vector, 99)
    within = index.search(question, vector, 99, mask(len(index), allowed))
    assert within == [hit for hit in everything if hit.row in allowed]


def test_a_vector_of_another_width_is_refused_and_changes_nothing() -> None:
    index = index_of([IndexRecord("lantern", 0, vector=vector_of(1))])
    wide = np.ones(WIDTH + 1, np.float32)
    with pytest.raises(ValueError, match="dimensions"):
        index.extend([IndexRecord("kettle", 0, vector=wide)])
    with pytest.raises(ValueError, match="dimensions"):
        index.put_stored([0], [packed(wide)])
    assert index.search("lantern", wide, 1) == index.search("lantern", None, 1)
    assert (len(index), len(index.stored_from(0))) == (1, 1)


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


def test_int8_vectors_hardly_change_scores() -> None:
    random = np.random.default_rng(5)
    rows_of = [unit(row) for row in random.standard_normal((200, 64)).astype(np.float32) + 0.5]
    stored = unpacked([packed(row) for row in rows_of])
    weights = Weights(floor=-np.inf)
    exact, quantised = HybridIndex(weights), HybridIndex(weights)
    for number, (row, small) in enumerate(zip(rows_of, stored, strict=True)):
        exact.extend([IndexRecord("lantern", number, vector=row)])
        quantised.extend([IndexRecord("lantern", number, vector=small)])
    for number in range(0, 200, 20):
        question = unit(rows_of[number] + 0.1 * random.standard_normal(64).astype(np.float32))
        whole = exact.search("lantern", question, 200)
        small_hits = quantised.search("lantern", question, 200)
        assert whole[0].row == small_hits[0].row == number
        assert scores(small_hits) == pytest.approx(scores(whole), abs=0.05)


def test_nbytes_grows_with_the_index() -> None:
    index = HybridIndex()
    before = index.nbytes
    index.extend([IndexRecord("lantern", 0, vector=vector_of(1))])
    assert index.nbytes > before


PLANTED_WIDTH = 64
FIRST, TANGENT = 7, 20


def planted() -> tuple[HybridIndex, Floats]:
    """Return an index of 40 records; the related one resembles only the answer."""
    random = np.random.default_rng(1)
    rows_of = random.standard_normal((40, PLANTED_WIDTH)).astype(np.float32)
    question = random.standard_normal(PLANTED_WIDTH).astype(np.float32)
    rows_of[FIRST] = question + 0.5 * rows_of[FIRST]
    rows_of[TANGENT] = rows_of[FIRST] - 0.9 * question + 0.3 * rows_of[TANGENT]
    index = HybridIndex()
    for number, row in enumerate(rows_of):
        index.extend([IndexRecord(f"filler{number}", number, vector=unit(row))])
    return index, unit(question)


def test_a_related_record_follows_the_direct_hits_unless_it_is_outside_the_mask() -> None:
    index, question = planted()
    direct = index.search("filler7", question, 3)
    assert rows(direct)[0] == FIRST
    assert TANGENT not in rows(direct)
    assert rows(index.related(direct, 3))[0] == TANGENT
    allowed = mask(len(index), set(range(40)) - {TANGENT})
    assert TANGENT not in rows(index.related(direct, 3, allowed))


@given(conversations(), questions, vectors)
def test_related_records_are_no_direct_hits(
    records: list[IndexRecord], question: str, vector: Floats
) -> None:
    index = index_of(records)
    direct = index.search(question, vector, 4)
    assert not set(rows(direct)) & set(rows(index.related(direct, 9)))


def test_a_hit_without_a_vector_has_no_related_records() -> None:
    index = index_of([IndexRecord("lantern", 0), IndexRecord("kettle", 1, vector=vector_of(1))])
    assert index.related(index.search("lantern", None, 1), 3) == []
