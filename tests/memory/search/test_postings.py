"""Flat postings hold what a list for each term would hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.search import postings, words
from memory.search.postings import Postings

TERMS = st.sets(st.sampled_from("abcdefgh"), max_size=5)
CHARACTERS = st.sampled_from("abZ09 _-'.\t?\x1f\u00e9\u6708\u4e09\u0660")


@pytest.fixture(autouse=True)
def _settle_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "_MAX_NEW", 3)


def append(flat: Postings, record: int, weights: dict[str, float]) -> None:
    """Add one record with the weight of each of its terms."""
    terms = np.array([flat.number(term) for term in weights], np.int64)
    flat.extend(np.full(len(terms), record), terms, np.array(list(weights.values())))


@given(st.data(), st.lists(TERMS, max_size=30))
def test_postings_equal_lists_of_each_term(data: st.DataObject, said: list[set[str]]) -> None:
    flat, held = Postings(), list[dict[str, float]]()
    for terms in said:
        weights = {term: float(data.draw(st.integers(1, 9))) for term in sorted(terms)}
        append(flat, len(held), weights)
        held.append(weights)
        for term in "abcdefgh":
            records, weighed = flat.of(term)
            expected = {at: each[term] for at, each in enumerate(held) if term in each}
            assert dict(zip(records.tolist(), weighed.tolist(), strict=True)) == expected
            assert records.tolist() == sorted(expected)


@given(st.text(CHARACTERS))
def test_ascii_texts_have_the_words_of_all_texts(text: str) -> None:
    assert words.words_of(text) == words._WORD.findall(words.fold(text))
