"""Words alone find the right message in every script, and a greeting finds nothing."""

import tomllib
from datetime import date
from functools import cache
from pathlib import Path

import pytest

from memory.search.hybrid import HybridIndex
from memory.search.message_search import IndexRecord

SAID = tomllib.loads(Path(__file__).with_name("said.toml").read_text("utf-8"))
ASKED = (
    ("English", "Where does my sister live?", 0),
    ("English", "What about the film on the volcano?", 2),
    ("English", "Whose cars broke?", 3),
    ("Russian", "Где живет сестра?", 0),
    ("Russian", "О каких вулканах был фильм?", 2),
    ("Russian", "Чья машина сломалась?", 3),
    ("Persian", "خواهرم کجا زندگی می‌کند؟", 0),
    ("Persian", "فیلم درباره آتشفشان چه بود؟", 2),
    ("Persian", "ماشین چه کسی خراب شد؟", 3),
    ("Chinese", "我姐姐住在哪里？", 0),
    ("Chinese", "那部火山电影怎么样？", 2),
    ("Chinese", "谁的车坏了？", 3),
    ("Japanese", "姉はどこに住んでいますか", 0),
    ("Japanese", "火山の映画は何でしたか", 2),
    ("Japanese", "誰の車が故障しましたか", 3),
    ("Thai", "พี่สาวอาศัยอยู่ที่ไหน", 0),
    ("Thai", "หนังภูเขาไฟเป็นอย่างไร", 2),
    ("Thai", "รถของใครเสีย", 3),
)
NOTHING = {
    "English": "hello|thanks!|What is it?|What is the boiling point of mercury?",
    "Russian": "привет|Какова температура кипения ртути?",
    "Persian": "سلام|نقطه جوش جیوه چند درجه است؟",
    "Chinese": "你好|水银的沸点是多少？",
    "Japanese": "こんにちは",
    "Thai": "สวัสดี",
}
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


DATED = (
    ("Ich habe heute mein Fahrrad verkauft", "Was habe ich im Mai verkauft?"),
    ("I sold my bicycle today", "What happened in May?"),
    ("Сегодня я продал свой велосипед", "Что было в мае?"),
    ("Dnes jsem prodal svoje kolo", "Co jsem prodal v květnu?"),
    ("امروز دوچرخه‌ام را فروختم", "در ماه مه چه شد؟"),
    ("今天我卖了我的自行车", "五月发生了什么？"),
    ("今天我卖了我的自行车", "5月发生了什么？"),
)


@pytest.mark.parametrize(("said", "question"), DATED)
def test_the_month_of_a_message_is_found_in_its_language(said: str, question: str) -> None:
    index = HybridIndex()
    for row, month in enumerate((3, 4, 5, 6)):
        index.extend([IndexRecord(said, session=row, said_on=date(2026, month, 14))])
    assert index.search(question, None, 4)[0].row == 2
