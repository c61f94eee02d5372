"""Flat postings hold what a list for each term would hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.search import lexical, words
from memory.search.lexical import Postings

TERMS = st.sets(st.sampled_from("abcdefgh"), max_size=5)
CHARACTERS = st.sampled_from("abZ09 _-'.\t?\x1f\u00e9\u6708\u4e09\u0660")


@pytest.fixture(autouse=True)
def _settle_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexical, "_MAX_NEW", 3)


def append(flat: Postings, record: int, counts: dict[str, int]) -> None:
    """Add one record with the count of each of its terms."""
    terms = np.array([flat.number(term) for term in counts], np.int64)
    flat.extend(np.full(len(terms), record), terms, np.array(list(counts.values()), np.int64))


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
