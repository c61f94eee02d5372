"""What a question asks for besides its words, in the languages of people."""

import asyncio
import re
import tomllib
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from memory.search.embeddings import QuestionVectors
from memory.search.hybrid import HybridIndex
from memory.search.lexical import Postings
from memory.search.message_search import IndexRecord
from memory.search.question import (
    NamedDays,
    anchored,
    asks,
    asks_for_all,
    asks_for_first,
    asks_for_summary,
    asks_when,
    named_days,
    relative_periods,
    tells_time,
)
from memory.search.words import slips_of, words_of
from tests.memory.search.conversations import index_of
from tests.memory.words_embedder import WordsEmbedder
from tests.work import calls

TIMES = tomllib.loads(Path(__file__).with_name("questions.toml").read_text("utf-8"))


def of_table(name: str) -> list[list[str]]:
    return [re.split(" {2,}", line) for line in TIMES[name].strip().splitlines()]


def test_words_of_time_are_told_from_words_that_are_spelled_like_them() -> None:
    def named(question: str) -> str:
        named = named_days(question)
        found = [(str(n.day or ""), str(n.month or ""), str(n.year or "")) for n in named]
        return " ".join(".".join(each).lstrip(".") for each in found) or "nothing"

    table = of_table("named")
    assert [[question, named(question)] for question, _ in table] == table


def test_words_of_distance_count_from_today_and_words_that_are_spelled_like_them_do_not() -> None:
    table = of_table("relative")
    found = [[asked, " ".join(map(" ".join, days(asked))) or "nothing"] for asked, _ in table]
    assert found == table


ENDLESS = """\
may |May 2023 and |1 May 2001 |2 weeks before |last week |dün |هفته قبل |1 may 1901 2 days ago """


@pytest.mark.parametrize("part", ENDLESS.split("|"))
def test_a_text_of_dates_costs_no_more_than_its_beginning_and_its_end(part: str) -> None:
    def read(text: str) -> None:
        assert len(named_days(text)) <= 60
        assert len(relative_periods(text, TODAY)) <= 60
        anchored(text)

    once = calls(lambda: read(part * 1_000))
    assert calls(lambda: read(part * 20_000)) <= 1.1 * once


def test_a_month_without_a_year_is_meant_in_every_year() -> None:
    begins = [date.fromordinal(first).year for first, _ in NamedDays(0, 2).periods(2023, 2025)]
    assert begins == [2023, 2024, 2025]
    assert NamedDays(31, 2).periods(2023, 2025) == []


ASKS: dict[str, Callable[[str], bool]] = {
    "when": asks_when,
    "all": asks_for_all,
    "first": asks_for_first,
    "summary": asks_for_summary,
    "unmarked": asks,
    "time": lambda text: any(map(tells_time, words_of(text))),
}


@pytest.mark.parametrize("kind", ASKS)
def test_what_a_question_asks_for_is_recognised(kind: str) -> None:
    wanted, other = TIMES["asks"][kind].strip().splitlines(), TIMES["does_not_ask"][kind]
    assert [each for each in wanted if not ASKS[kind](each)] == []
    assert [each for each in other.strip().splitlines() if ASKS[kind](each)] == []
    assert kind != "summary" or all(map(asks_for_all, wanted))


SOUPS = [IndexRecord(f"Good soup number{row}", row) for row in range(40)]


def conversation(*said: tuple[date, str]) -> HybridIndex:
    return index_of([IndexRecord(text, row, said_on=day) for row, (day, text) in enumerate(said)])


def test_what_was_said_in_the_month_of_the_question_comes_first() -> None:
    index = conversation(*((date(2026, month, 2), "We sailed the boat") for month in (3, 5, 6, 9)))
    assert index.search("Where did the boat sail in May?", None, 4)[0].row == 1


def test_a_message_with_a_number_comes_first_if_one_is_asked_for() -> None:
    said = ("My boats are red", "I own 3 boats", "I wash my boats")
    index = index_of([IndexRecord(text, row) for row, text in enumerate(said)])
    assert index.search("How many boats do I have?", None, 3)[0].row == 1
    assert index.search("Who has boats?", None, 3)[0].row == 0


def test_answers_of_the_assistant_gain_if_a_summary_is_asked_for() -> None:
    own = IndexRecord("My boat needs a new sail", 0)
    index = index_of([own, IndexRecord("Your boat needs a sail and paint", 0, by_assistant=True)])

    def lead(question: str) -> float:
        hits = {hit.row: hit.score for hit in index.search(question, None, 2)}
        return hits[1] - hits[0]

    assert lead("Summarize the boat") > lead("What about the boat") + 1


def test_a_persons_answer_gets_more_of_a_question_than_the_assistants() -> None:
    asked = "Where does your sister live now?"
    index = index_of([IndexRecord(asked, 0), IndexRecord("By the sea", 0), IndexRecord(asked, 1)])
    index.extend([IndexRecord("By the sea", 1, by_assistant=True)])
    hits = {hit.row: hit.lexical for hit in index.search("My sister?", None, 4)}
    assert hits[1] > hits[3]
    assert hits[0] == hits[2]


def test_a_short_text_that_asks_nothing_finds_only_what_has_its_rarest_word() -> None:
    index = index_of([*SOUPS, IndexRecord("Four nights at sea", 40), IndexRecord("And then?", 40)])
    assert [hit.row for hit in index.search("Good nights", None, 9)] == [40]
    assert [hit.row for hit in index.search("was it a good night", None, 9)] == [40, 41]


def test_whether_somebody_remembers_is_no_part_of_what_is_looked_for() -> None:
    for said, *questions in of_table("framed"):
        index = index_of([*SOUPS, *(IndexRecord(f"{said} {n}", n) for n in range(40, 46))])
        assert [each for each in questions if not index.search(each, None, 1)] == []


def test_weak_evidence_without_vectors_needs_a_rare_word() -> None:
    soups = [IndexRecord(f"Soup for {row} days", row) for row in range(40)]
    index = index_of([*soups, IndexRecord("A goat", 40)])
    assert index.search("How many days has winter on Jupiter and Saturn?", None, 9) == []
    index.extend([IndexRecord("Bruce, obviously", 40)])
    found = index.search("Has the goat seen days on Jupiter and Saturn?", None, 9)
    assert [hit.row for hit in found] == [40, 41]  # the rare word, and what was said beside it


def test_a_part_of_a_compound_finds_the_compound() -> None:
    soups = [IndexRecord(f"Die Suppe Nummer {row} war gut", row) for row in range(40)]
    index = index_of([*soups, IndexRecord("Der Garagenschlüssel hängt bei Familie Wessel", 40)])
    assert index.search("Wo ist der Schlüssel?", None, 3)[0].row == 40
    assert index.search("Wo ist die Schlüsselkiste?", None, 3) == []


def test_a_word_with_a_slip_or_in_another_spelling_finds_the_word_that_is_meant() -> None:
    index = index_of([*SOUPS, IndexRecord("Marisa's favorite colour is teal", 40)])
    for asked in ("What is my favourite color?", "Who likes taels and faovrites?"):
        assert index.search(asked, None, 3)[0].row == 40
    assert index.search("Who is Marina?", None, 3) == []


def test_an_unknown_word_is_looked_for_in_bounded_time_however_large_the_vocabulary() -> None:
    assert len(slips_of("st" + "abcdefghij" * 6)) < 61 * 100
    postings = Postings()
    postings.numbers.update({f"steamship{number}": number for number in range(10_000)})
    assert len(postings.similar(["steamship"])) == 100


def test_two_frequent_words_that_few_records_share_are_evidence_too() -> None:
    others = ["The room is red", "Wim sings"] * 20
    index = index_of([IndexRecord(text, row) for row, text in enumerate(others)])
    index.extend([IndexRecord("Teodor moved into Wim's room", 40)])
    assert [hit.row for hit in index.search("Who lives in Wim's room?", None, 9)] == [40]


def test_without_vectors_the_rare_words_of_the_best_hit_search_again() -> None:
    first = "My apprentice is called Joaquín"
    index = index_of([*SOUPS, IndexRecord(first, 40), IndexRecord("Joaquín went to Murano", 41)])
    hits = index.search("Who is my apprentice?", None, 9)
    assert [hit.row for hit in hits] == [40]
    assert [hit.row for hit in index.related(hits, 5, None, first)] == [41]
    assert index.related(hits, 5) == []


def test_a_list_is_filled_up_with_statements_of_rare_words() -> None:
    soups = [f"Good soup number {row % 4}" for row in range(40)]
    said = "The museum in Bonn was open", "Half of the Prado is closed", "What is the Rijksmuseum?"
    index = index_of([IndexRecord(text, row) for row, text in enumerate([*soups, *said])])
    index.extend([IndexRecord("Visit the Albertina", 43, by_assistant=True)])
    allowed = np.ones(44, np.bool_)
    assert index.search("Which museums have I seen?", None, 2)[0].row == 40
    find = index.statements_of_rare_words
    assert {hit.row for hit in find("Which museums have I seen?", 2, allowed)} == {40, 41}
    allowed[41] = False
    assert 41 not in {hit.row for hit in find("Which museums did I mention or tell", 9, allowed)}
    assert find("Which submarines and volcanoes?", 9, allowed) == []


TODAY = date(2026, 11, 22)  # a Sunday


def days(question: str) -> list[tuple[str, str]]:
    found = relative_periods(question, TODAY)
    return [(str(date.fromordinal(a)), str(date.fromordinal(b))) for a, b in found]


def test_a_season_that_is_not_over_is_not_the_last_one() -> None:
    winter = (date(2024, 12, 1).toordinal(), date(2025, 2, 28).toordinal())
    assert relative_periods("last winter", date(2026, 1, 15)) == [winter]
    assert relative_periods("last winter", date(2025, 3, 1)) == [winter]


def test_days_may_be_counted_from_what_happened() -> None:
    table = of_table("anchored")
    found = [(asked, anchored(asked)) for asked, *_ in table]
    assert [[asked, each[0], *map(str, each[1])] for asked, each in found if each] == table
    assert [asked for asked, _ in found if relative_periods(asked, TODAY)] == []
    assert anchored("Before the move?") is None


def test_what_was_said_then_comes_first() -> None:
    index = conversation(
        (date(2026, 7, 3), "We swam in the lake"),
        (date(2026, 10, 2), "We swam in the pool and in the sea"),
    )
    assert index.search("Where did we swim last summer?", None, 2, asked_on=TODAY)[0].row == 0
    assert index.search("Where did we swim last month?", None, 2, asked_on=TODAY)[0].row == 1


def test_a_question_for_days_with_messages_is_not_refused_for_its_words() -> None:
    said = [(date(2026, 10, 1), f"We spoke of boat number {n}") for n in range(40)]
    index = conversation(*said, (date(2026, 11, 21), "My cat ran away"))
    question = "what happened yesterday"
    assert [hit.row for hit in index.search(question, None, 5, asked_on=TODAY)][:1] == [40]
    assert index.search("Much happened in the last two years", None, 5, asked_on=TODAY) == []
    assert index.search("What happened two years ago?", None, 5, asked_on=TODAY) == []


def test_days_are_counted_from_the_message_about_what_happened() -> None:
    index = conversation(
        (date(2026, 3, 1), "I bought a lamp"),
        (date(2026, 3, 15), "The move to Bari is done"),
        (date(2026, 9, 1), "I bought a lamp, again"),
    )
    question = "Which lamp was it two weeks before the move?"
    assert index.search(question, None, 3, asked_on=TODAY)[0].row == 0


async def test_a_question_whose_call_failed_after_its_caller_left_is_embedded_again() -> None:
    embedder, goes_on = WordsEmbedder(), asyncio.Event()
    embedder.fails_at, embedder.meanwhile = 1, goes_on.wait
    questions, asked = QuestionVectors(embedder), ("My boat?", f"{embedder.fingerprint} | ", "")
    caller = asyncio.create_task(questions.vector(*asked))
    await asyncio.sleep(0)
    caller.cancel()
    goes_on.set()
    for _ in range(5):  # the call fails, and then its callbacks run
        await asyncio.sleep(0)
    assert await questions.vector(*asked) is not None
    assert (embedder.fails_at, len(embedder.calls)) == (0, 1)
