"""Words alone find the right message in every script, and a greeting finds nothing.

A hundred further questions in four languages are made up of words in two of their forms.
"""

import tomllib
from datetime import date
from functools import cache
from pathlib import Path

import pytest

from memory.search.hybrid import HybridIndex
from memory.search.message_search import IndexRecord

SAMPLES = tomllib.loads(Path(__file__).with_name("said.toml").read_text("utf-8"))
SAID, NOTHING, FORMS = SAMPLES["said"], SAMPLES["nothing"], SAMPLES["forms"]
ASKED = [(language, *each) for language, few in SAMPLES["asked"].items() for each in few]
SMALL_TALK = (
    "Good morning! How are you?|what's 8 times 7?|Wie geht es dir?|Combien font 12 fois 9 ?|"
    "Доброе утро!|Apa kabar?|شب بخیر|早上好！"
)


@cache
def spoken(*languages: str) -> tuple[HybridIndex, dict[str, int]]:
    """Return an index of the messages of these languages, and the first row of each."""
    index, first = HybridIndex(), {}
    for language in languages:
        first[language] = len(index)
        for text in SAID[language]:
            index.extend([IndexRecord(text, session=len(index))])
    return index, first


@pytest.mark.parametrize(("language", "question", "answer"), ASKED)
def test_the_right_message_ranks_first_alone_and_among_all_languages(
    language: str, question: str, answer: int
) -> None:
    alone, _ = spoken(language)
    assert alone.search(question, None, 3)[0].row == answer
    together, first = spoken(*SAID)
    assert together.search(question, None, 3)[0].row == first[language] + answer


@pytest.mark.parametrize("language", NOTHING)
def test_greetings_and_unrelated_questions_find_nothing(language: str) -> None:
    index, _ = spoken(language)
    assert not any(index.search(question, None, 3) for question in NOTHING[language].split("|"))


@pytest.mark.parametrize(
    ("said", "asked"),
    [("Danke!", "Super, vielen Dank dir"), *((text, text) for text in SMALL_TALK.split("|"))],
)
def test_small_talk_does_not_even_find_itself(said: str, asked: str) -> None:
    index = HybridIndex()
    index.extend([IndexRecord(said, session=0)])
    assert index.search(asked, None, 3) == []


@pytest.mark.parametrize(("said", "question"), SAMPLES["dated"])
def test_the_month_of_a_message_is_found_in_its_language(said: str, question: str) -> None:
    index = HybridIndex()
    for row, month in enumerate((3, 4, 5, 6)):
        index.extend([IndexRecord(said, session=row, said_on=date(2026, month, 14))])
    assert index.search(question, None, 4)[0].row == 2


@pytest.mark.parametrize("language", FORMS)
def test_each_question_finds_its_message_first(language: str) -> None:
    forms = FORMS[language]
    pairs = [pair.split("/") for pair in forms["things"].split()]
    assert len(pairs) == 25
    index = HybridIndex()
    for said, _ in pairs:
        index.extend([IndexRecord(forms["said"].format(said), session=len(index))])
    missed = []
    for row, (_, asked) in enumerate(pairs):
        hits = index.search(forms["asked"].format(asked), None, 3)
        if not hits or hits[0].row != row:
            missed.append(asked)
    assert missed == []
