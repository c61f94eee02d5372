"""Many texts at once have the languages that each has alone."""

from itertools import chain

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memory.search.vocabulary import ABSENT, CODES, SCRIPTS, UNCLEAR, Vocabulary
from memory.search.words import UNKNOWN, languages_of, words_of

SAID = "the cat is der nicht und les chats não на столе він її گربه من का 山 2024 ok".split()  # noqa: SIM905 - read as words
TEXTS = st.lists(st.lists(st.sampled_from(SAID), max_size=6).map(" ".join), max_size=6)


@given(TEXTS)
def test_many_texts_have_the_languages_that_each_has_alone(texts: list[str]) -> None:
    words = [words_of(text) for text in texts]
    vocabulary = Vocabulary()
    numbers = np.array([vocabulary[word] for word in chain.from_iterable(words)], np.int64)
    of_words = np.repeat(np.arange(len(texts)), [len(each) for each in words])
    guesses = vocabulary.guesses(numbers, of_words, len(texts))
    guessed = [
        {
            script: UNKNOWN if code == UNCLEAR else CODES[code]
            for script, code in zip(SCRIPTS, guess, strict=True)
            if code != ABSENT
        }
        for guess in guesses
    ]
    assert guessed == [languages_of(each, {}) for each in words]
    assert vocabulary.have_ideographs(numbers, of_words, len(texts)) == ["山" in t for t in texts]
