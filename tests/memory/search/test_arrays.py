"""An index that grew record by record equals one that was built at once."""

from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.scopes.log import packed
from memory.search import dense, lexical, words
from memory.search.arrays import Floats, GrowingArray, int8_rows
from memory.search.hybrid import HybridIndex
from memory.search.lexical import Postings, Sessions
from memory.search.message_search import IndexRecord
from tests.memory.search.conversations import (
    WIDTH,
    Said,
    conversations,
    index_of,
    questions,
    scores,
    unit,
    vector_of,
    vectors,
)


@given(st.lists(st.lists(st.integers(-(2**40), 2**40), max_size=9), max_size=9))
def test_a_growing_array_behaves_like_a_list(parts: list[list[int]]) -> None:
    array, listed = GrowingArray(np.int64), list[int]()
    for values in parts:
        array.extend(values)
        listed += values
        assert array.view.tolist() == listed
        assert len(array) == len(listed)


@given(st.lists(st.booleans(), min_size=1, max_size=30), st.data())
def test_a_record_gets_its_sessions_best_score(begins: list[bool], data: st.DataObject) -> None:
    sessions, numbers = Sessions(), np.cumsum(begins).tolist()
    flags = np.zeros(len(numbers), np.bool_)
    first = data.draw(st.integers(1, len(numbers)))
    for part in (slice(first), *([slice(first, None)] if numbers[first:] else [])):
        sessions.extend(numbers[part], flags[part], flags[part])
    said = np.arange(len(numbers), dtype=np.float32) % 7
    best = {number: said[np.equal(numbers, number)].max() for number in numbers}
    assert sessions.best(said).tolist() == [best[number] for number in numbers]


@given(conversations(most=20), st.data(), questions, vectors)
def test_results_depend_only_on_the_vectors_that_are_held(
    said: Said, data: st.DataObject, question: str, vector: Floats
) -> None:
    """Late and replaced vectors between appends give the index of the final records."""
    index, held = HybridIndex(), dict[int, Floats]()
    for record in said[0]:
        index.extend([record])
        index.search(question, vector, 1)
        for _ in range(data.draw(st.integers(0, 2))):
            row = data.draw(st.integers(0, len(index) - 1))
            held[row] = data.draw(vectors)
            index.put_stored([row], [packed(held[row])])
    expected = index_of(said[0], [held.get(row) for row in range(len(index))])
    expected_scores = scores(expected.search(question, vector, 99))
    assert scores(index.search(question, vector, 99)) == pytest.approx(expected_scores, abs=1e-3)


def test_int8_vectors_hardly_change_directions() -> None:
    rows = [unit(row) for row in np.random.default_rng(5).standard_normal((200, 64))]
    stored = [unit(row) for row in int8_rows([*map(packed, rows)]).astype(np.float32)]
    assert np.einsum("ij,ij->i", stored, rows).min() > 0.9999


@given(conversations(), questions, st.integers(1, 3 * WIDTH).filter(lambda width: width != WIDTH))
def test_vectors_of_another_model_are_refused_and_words_still_find(
    said: Said, question: str, width: int
) -> None:
    index, untrusted = index_of(*said), np.full(width, width**-0.5, np.float32)
    index.put_stored([0], [packed(vector_of(1))])
    before = index.search(question, None, 99)
    with pytest.raises(ValueError, match="dimensions"):
        index.put_stored([0], [packed(untrusted)])
    assert index.search(question, untrusted, 99) == index.search(question, None, 99) == before


def test_few_of_many_records_are_scored_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    topics = random.standard_normal((240, 100)).repeat(20, axis=0) + 4
    rows = [unit(row) for row in topics + random.standard_normal(topics.shape)]
    records = [IndexRecord(f"w {n % 13} {n % 97}", n // 20) for n in range(4_800)]
    asked = [(f"w {at % 97}?", unit(rows[at] + rows[at - 9])) for at in range(0, 4800, 96)]
    whole, grown = index_of(records, rows), HybridIndex()
    exact = [{hit.row for hit in whole.search(*each, 10)} for each in asked]
    for name, bound in (("_MAX_EXACT", 999), ("_LIKELY", 60), ("_NEAREST", 60), ("_SAMPLED", 240)):
        monkeypatch.setattr(dense, name, bound)
    for start in range(0, len(records), 400):
        part = range(start, start + 400)
        grown.extend(records[start : start + 400])
        grown.put_stored(part, [packed(rows[row]) for row in part])
        grown.search(*asked[0], 10)
    found = [grown.search(*each, 10) for each in asked]
    same = [len(rows & {hit.row for hit in hits}) for rows, hits in zip(exact, found, strict=True)]
    assert sum(same) >= 0.95 * 10 * len(asked)  # of real vectors, 99 of 100 are the same
    assert len(grown._dense.scores(rows[0], np.zeros(4800, np.float32)).rows) < 1600
    fresh = index_of(records, rows)  # a copy for each question, because a search measures new rows
    assert [deepcopy(fresh).search(*each, 10) for each in asked] == found


TERMS = st.sets(st.sampled_from("abcdefgh"), max_size=5)
CHARACTERS = st.sampled_from("abZ09 _-'.\t?\x1f\u00e9\u6708\u4e09\u0660")


@pytest.fixture
def _settle_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexical, "_MAX_NEW", 3)


def append(flat: Postings, record: int, counts: dict[str, int]) -> None:
    """Add one record with the count of each of its terms."""
    terms = np.array([flat.numbers.setdefault(t, len(flat.numbers)) for t in counts], np.int64)
    flat.extend(np.full(len(terms), record), terms, np.array(list(counts.values()), np.int64))


@pytest.mark.usefixtures("_settle_often")
@given(st.data(), st.lists(TERMS, max_size=30))
def test_postings_equal_lists_of_each_term(data: st.DataObject, said: list[set[str]]) -> None:
    flat, held = Postings(), list[dict[str, int]]()
    for terms in said:
        counts = {term: data.draw(st.integers(1, 300)) for term in sorted(terms)}
        append(flat, len(held), counts)
        held.append(counts)
        for term in "abcdefgh":
            records, counted = flat.of([term])
            expected = {at: min(each[term], 255) for at, each in enumerate(held) if term in each}
            assert dict(zip(records.tolist(), counted.tolist(), strict=True)) == expected
            assert records.tolist() == sorted(expected)
            assert flat.of([term, "a"])[0].tolist() == sorted({*expected, *flat.of(["a"])[0]})


@given(st.text(CHARACTERS))
def test_ascii_texts_have_the_words_of_all_texts(text: str) -> None:
    assert words.words_of(text) == words._WORD.findall(words.fold(text))
