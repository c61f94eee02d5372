"""Many texts at once have the languages that each has alone, and tell a time if a word does."""

from hypothesis import given
from hypothesis import strategies as st

from memory.search.question import tells_time
from memory.search.vocabulary import ABSENT, CODES, SCRIPTS, UNCLEAR, Vocabulary
from memory.search.words import UNKNOWN, languages_of, words_of

SAID = "the cat is der nicht und les chats não на столе він її گربه من का 山 2024 ok".split()  # noqa: SIM905 - read as words
TEXTS = st.lists(st.lists(st.sampled_from(SAID), max_size=6).map(" ".join), max_size=6)


@given(TEXTS)
def test_many_texts_say_together_what_each_says_alone(texts: list[str]) -> None:
    words = [words_of(text) for text in texts]
    vocabulary = Vocabulary()
    said = vocabulary.read(words)
    guessed = [
        {
            script: UNKNOWN if code == UNCLEAR else CODES[code]
            for script, code in zip(SCRIPTS, guess, strict=True)
            if code != ABSENT
        }
        for guess in vocabulary.guesses(said)
    ]
    assert guessed == [languages_of(each, {}) for each in words]
    assert vocabulary.have_ideographs(said).tolist() == ["山" in text for text in texts]
    told = [any(map(tells_time, each)) for each in words]
    assert vocabulary.tell_times(said).tolist() == told
