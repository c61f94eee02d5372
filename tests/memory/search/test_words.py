"""From text to terms: what counts as one word, and which spellings are the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.search.question import tells_time
from memory.search.vocabulary import ABSENT, CODES, SCRIPTS, UNCLEAR, Vocabulary
from memory.search.words import (
    UNKNOWN,
    asked_terms,
    beginnings_of,
    languages_of,
    script_of,
    stem,
    terms_of,
    words_of,
)
from tests.work import QUADRATIC, ratio


def terms(text: str) -> list[str]:
    words = words_of(text)
    return terms_of(words, languages_of(words, {}))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("STRASSE", "straße"),
        ("Ёлка", "елка"),
        ("ＬＩＳＢＯＮ", "lisbon"),
        ("كتاب", "کتاب"),
        ("e\u0301clair", "éclair"),
    ],
)
def test_mixed_spellings_become_one_word(one: str, other: str) -> None:
    assert words_of(one) == words_of(other)


def test_a_run_of_marks_over_one_letter_takes_linear_time() -> None:
    long, short = ("a" + "\u0345\u0301\u0316" * times for times in (10_000, 625))
    assert ratio(lambda: words_of(long), lambda: words_of(short), QUADRATIC) < QUADRATIC
    assert words_of("e\u0301clair \u1100\u1161. " * 300) == ["éclair", "가"] * 300


def test_words_are_told_by_their_beginnings_and_codes_as_a_whole() -> None:
    assert beginnings_of("My gates, by 7: 0400abcd") == {"gate", "7", "0400abcd"}


def test_punctuation_and_symbols_separate_words() -> None:
    """ASCII is cut in another way than other texts."""
    for said in ("Tea, milk—sugar; 3,50 € #now_or @no", "Tea, milk-sugar; 3,50 $ #now_or @no"):
        assert " ".join(words_of(said)) == "tea milk sugar 3 50 now or no"


def test_marks_stay_in_words_of_indic_scripts() -> None:
    assert words_of("हिन्दी में") == ["हिन्दी", "में"]


@pytest.mark.parametrize(
    ("language", "forms"),
    [
        ("en", ("volcano", "volcanoes")),
        ("ru", ("кошка", "кошками")),
        ("de", ("hund", "hunde")),
        ("es", ("gatos", "gato")),
    ],
)
def test_inflected_forms_share_a_stem(language: str, forms: tuple[str, str]) -> None:
    assert stem(forms[0], language) == stem(forms[1], language)


def test_a_word_of_an_unknown_language_is_cut_to_its_first_letters() -> None:
    assert stem("mailaheinlahti", UNKNOWN) == "maila"
    assert stem("20251231", UNKNOWN) == "20251231"


def test_scripts_without_spaces_become_overlapping_n_grams() -> None:
    assert terms("火山") == ["火", "火山", "山"]
    assert terms("ภูเขาไฟ")[0] == "ภูเ"
    assert "猫" in terms("I have a 猫 here")


def test_function_words_show_the_language_of_each_script() -> None:
    words = words_of("the cat is на столе и под столом")
    assert languages_of(words, {}) == {"latin": "en", "cyrillic": "ru"}


def test_without_function_words_the_default_language_is_used() -> None:
    assert languages_of(["kettle"], {"latin": "en"}) == {"latin": "en"}
    asked = words_of("Remind me in two hours to call Anna")
    assert languages_of(asked, {"latin": "de"}) == {"latin": "en"}  # "me" and "to" are Slovene, too
    assert languages_of(["kettle"], {}) == {"latin": UNKNOWN}


def test_function_words_of_a_question_are_dropped() -> None:
    heard = {"latin": frozenset({"en"})}
    assert asked_terms(words_of("where is the kettle?"), heard) == [("kettl",)]
    assert asked_terms(words_of("who are you?"), heard) == []


def test_a_word_is_looked_up_in_the_forms_of_all_spoken_languages() -> None:
    assert asked_terms(["hunde"], {"latin": frozenset({"de", UNKNOWN})}) == [("hunde", "hund")]


def test_only_the_first_letters_of_a_very_long_word_are_used() -> None:
    assert stem("a" * 4096, "en") == stem("a" * 64, "en")
    assert script_of("1" * 4096 + "a") == script_of("1" * 4096)


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
    assert said.have_ideographs.tolist() == ["山" in text for text in texts]
    assert said.tell_times.tolist() == [any(map(tells_time, each)) for each in words]
