"""Days that a question names by their distance are found, in the languages of the bot."""

from datetime import date

import pytest

from memory.search.hybrid import HybridIndex
from memory.search.message_search import IndexRecord
from memory.search.question import Anchored, anchored, last_months, relative_periods

TODAY = date(2026, 11, 22)
"""A Sunday."""


def days(question: str) -> list[tuple[str, str]]:
    found = [*relative_periods(question, TODAY), *last_months(question, TODAY)]
    return [(str(date.fromordinal(a)), str(date.fromordinal(b))) for a, b in found]


def test_a_season_that_is_not_over_is_not_the_last_one() -> None:
    winter = (date(2024, 12, 1).toordinal(), date(2025, 2, 28).toordinal())
    assert relative_periods("last winter", date(2026, 1, 15)) == [winter]
    assert relative_periods("last winter", date(2025, 3, 1)) == [winter]


@pytest.mark.parametrize(
    ("questions", "first", "last"),
    [
        ("yesterday|Was war gestern?|¿ayer?|Что было вчера?|دیروز", "2026-11-21", "2026-11-21"),
        (
            "two weeks ago|vor zwei Wochen|hace dos semanas|две недели назад|دو هفته پیش",
            "2026-11-05",
            "2026-11-11",
        ),
        (
            "last week|letzte Woche|la semana pasada|на прошлой неделе|هفته گذشته",
            "2026-11-09",
            "2026-11-15",
        ),
        (
            "last summer|im letzten Sommer|el verano pasado|прошлым летом|تابستان گذشته",
            "2026-06-01",
            "2026-08-31",
        ),
        (
            "last May|im letzten Mai|en mayo pasado|в прошлом мае|مه گذشته",
            "2026-05-01",
            "2026-05-31",
        ),
        ("last winter|letzten Winter", "2025-12-01", "2026-02-28"),
        (
            (
                "O que eu fiz ontem?|Qu'est-ce que j'ai fait hier ?|Che cosa ho fatto ieri?"
                "|Apa yang aku lakukan kemarin?|Dün ne yaptım?|Що я робив учора?"
            ),
            "2026-11-21",
            "2026-11-21",
        ),
        (
            (
                "O que eu disse há duas semanas?|Qu'est-ce que j'ai dit il y a deux semaines ?"
                "|Che cosa ho detto due settimane fa?|Apa yang aku katakan dua minggu lalu?"
                "|İki hafta önce ne dedim?|Що я сказав два тижні тому?"
            ),
            "2026-11-05",
            "2026-11-11",
        ),
        (
            (
                "Onde eu estava na semana passada?|Où étais-je la semaine dernière ?"
                "|Dove ero la settimana scorsa?|Geçen hafta neredeydim?|Де я був минулого тижня?"
            ),
            "2026-11-09",
            "2026-11-15",
        ),
        ("last December", "2025-12-01", "2025-12-31"),
        ("last month", "2026-10-01", "2026-10-31"),
        ("last year", "2025-01-01", "2025-12-31"),
        ("in the last 3 days", "2026-11-19", "2026-11-22"),
        ("on Friday|am Freitag|el viernes|в пятницу|جمعه", "2026-11-20", "2026-11-20"),
    ],
)
def test_days_are_counted_from_today(questions: str, first: str, last: str) -> None:
    for question in questions.split("|"):
        assert days(question) == [(first, last)], question


@pytest.mark.parametrize(
    ("question", "anchor"),
    [
        ("What did I buy two weeks before the move?", Anchored(-14, 3, "the move")),
        ("Was kaufte ich zwei Wochen vor dem Umzug?", Anchored(-14, 3, "dem umzug")),
        ("¿Qué compré el día después de la boda?", Anchored(1, 0, "de la boda")),
        ("Что я купил за две недели до переезда?", Anchored(-14, 3, "переезда")),
        ("دو هفته قبل از سفر", Anchored(-14, 3, "سفر")),
        ("Before the move?", None),
    ],
)
def test_days_may_be_counted_from_what_happened(question: str, anchor: Anchored | None) -> None:
    assert anchored(question) == anchor
    assert relative_periods(question, TODAY) == []


def conversation(*said: tuple[date, str]) -> HybridIndex:
    index = HybridIndex()
    for number, (day, text) in enumerate(said):
        index.extend([IndexRecord(text, number, said_on=day)])
    return index


def test_what_was_said_then_comes_first() -> None:
    index = conversation(
        (date(2026, 7, 3), "We swam in the lake"),
        (date(2026, 10, 2), "We swam in the pool and in the sea"),
    )
    question = "Where did we swim last summer?"
    assert index.search(question, None, 2, asked_on=TODAY)[0].row == 0
    assert index.search("Where did we swim last month?", None, 2, asked_on=TODAY)[0].row == 1


def test_a_question_for_days_with_messages_is_not_refused_for_its_words() -> None:
    said = [(date(2026, 10, 1), f"We spoke of boat number {n}") for n in range(40)]
    index = conversation(*said, (date(2026, 11, 21), "My cat ran away"))
    question = "What happened yesterday?"
    assert [hit.row for hit in index.search(question, None, 5, asked_on=TODAY)][:1] == [40]
    assert index.search("What happened in the last two years", None, 5, asked_on=TODAY) == []
    assert index.search("What happened two years ago?", None, 5, asked_on=TODAY) == []


def test_days_are_counted_from_the_message_about_what_happened() -> None:
    index = conversation(
        (date(2026, 3, 1), "I bought a lamp"),
        (date(2026, 3, 15), "The move to Bari is done"),
        (date(2026, 9, 1), "I bought a lamp, again"),
    )
    question = "Which lamp was it two weeks before the move?"
    assert index.search(question, None, 3, asked_on=TODAY)[0].row == 0
