"""The excerpt of a long text is the passage that a question is about, within a limit."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.search.excerpt import LEFT_OUT, Asked, relevant_excerpt
from memory.text.tokens import TokenCounter
from tests.work import QUADRATIC, calls, ratio

FILLER = "The weather was grey and nobody had anything to say about it at all. "


def test_a_text_that_fits_is_returned_whole() -> None:
    assert relevant_excerpt("A boat. ", Asked("boat"), 7) == "A boat."


def test_the_sentence_that_answers_is_shown_whole_with_its_neighbors() -> None:
    text = FILLER * 40 + "My boats are called Aurora and Vega. " + FILLER * 40
    wanted = f"{LEFT_OUT} {FILLER}My boats are called Aurora and Vega. {FILLER}{LEFT_OUT}"
    assert relevant_excerpt(text, Asked("What is the boat called?"), 200) == wanted


@pytest.mark.parametrize(
    ("filler", "answer", "question"),
    [
        ("Вчера шёл дождь. ", "Мою лодку зовут Аврора.", "Как называются лодки?"),
        ("دیروز هوا سرد بود. ", "اسم قایق من سپیده است.", "قایق چه نام دارد؟"),
        ("היום ירד גשם חזק בעיר. ", "לסירה שלי קוראים שחר.", "מה שם לסירה?"),
        ("昨天一直在下雨。", "我的小船叫黎明。", "船的名字是什么？"),
        ("昨日は雨が降りました。", "私の船の名前は夜明けです。", "船は何という？"),
        ("เมื่อวานฝนตกทั้งวันเลย\n", "เรือของฉันชื่ออรุณ", "ชื่อเรือ"),
    ],
)
def test_the_passage_is_found_in_any_script(filler: str, answer: str, question: str) -> None:
    shown = relevant_excerpt(filler * 60 + answer + " " + filler * 60, Asked(question), 120)
    assert answer in shown
    assert shown.startswith(f"{LEFT_OUT} {filler.strip()}")
    assert shown.endswith(f"{filler.strip()} {LEFT_OUT}")


@pytest.mark.parametrize(
    ("text", "question", "expected"),
    [
        ("昨天下雨" * 200 + "小船叫黎明" + "昨天下雨" * 200, "小船", "小船叫黎明"),
        ("grey day and rain " * 200 + "boat Aurora " + "rain " * 900, "boat", "boat Aurora"),
    ],
)
def test_without_sentences_there_is_a_passage(text: str, question: str, expected: str) -> None:
    assert expected in relevant_excerpt(text, Asked(question), 100)


def test_words_close_together_count_more_than_one_frequent_word() -> None:
    text = ("A boat passed. " * 30) + FILLER * 9 + "That red boat sank in June. " + FILLER * 30
    assert "red boat sank" in relevant_excerpt(text, Asked("When did the red boat sink?"), 150)


def test_rare_words_count_more_than_common_ones() -> None:
    text = f"{FILLER}The boat is wet. " * 30 + f"The boat has a lantern. {FILLER}" + FILLER * 9
    assert "lantern" in relevant_excerpt(text, Asked("boat lantern"), 150)


@pytest.mark.parametrize("question", ["", "And now?", "giraffe"])
def test_without_a_shared_word_the_beginning_is_shown(question: str) -> None:
    shown = relevant_excerpt(f"It begins. {FILLER * 50}", Asked(question), 200)
    assert shown.startswith("It begins. The weather")
    assert shown.endswith(f" {LEFT_OUT}")


def test_a_cut_between_characters_leaves_them_whole() -> None:
    family = "👩\u200d👩\u200d👧"
    shown = relevant_excerpt(family * 100, Asked("?"), 60)
    assert shown == f"{family * (shown.count(family))} {LEFT_OUT}"
    assert family in shown


def test_the_limit_is_used_whatever_characters_cost(tokens: TokenCounter) -> None:
    """Tokens are short in some scripts, so the excerpt itself is measured."""
    persian = "هوای دیروز سرد و ابری بود و کسی حرفی نزد. "
    for text in (persian * 200 + "My boat is Aurora. " + FILLER * 20, FILLER * 200 + persian * 40):
        shown = relevant_excerpt(text, Asked("boat ابری"), 200, tokens.count)
        assert 130 < tokens.count(shown) <= 200


sentences = st.sampled_from(
    [
        *("Boats sank. ", FILLER, "قایق آبی است؟ ", "我的小船叫黎明。", "เรือของฉัน", "x" * 300),
        *(
            "word ",
            "\n",
            " . ",
            "👩\u200d👩\u200d👧",
            "e\u0301",
            "\ud800",
            " " * 50,
            "<|endoftext|>",
        ),
    ]
) | st.text(max_size=30)
texts = st.lists(
    st.tuples(sentences, st.sampled_from([1, 1, 2, 30])).map(lambda said: said[0] * said[1]),
    max_size=20,
).map("".join)
questions = st.sampled_from(["boat", "قایق 小船 เรือ", "", "word x " * 500]) | st.text(max_size=30)
in_characters = st.tuples(texts, questions, st.integers(0, 400))


@given(in_characters)
def test_an_excerpt_is_part_of_the_text_within_its_limit(case: tuple[str, str, int]) -> None:
    text, question, limit = case
    shown = relevant_excerpt(text, Asked(question), limit)
    assert len(shown) <= limit
    if not shown:
        assert limit < len("[…] x […]") or not text.strip()
        return
    begun = shown.removeprefix(f"{LEFT_OUT} ")
    passage = begun.removesuffix(f" {LEFT_OUT}")
    assert passage in text
    assert begun != shown or text.strip().startswith(passage)
    assert passage != begun or text.strip().endswith(passage)


@given(in_characters)
def test_an_excerpt_never_exceeds_its_limit_in_tokens(
    tokens: TokenCounter, case: tuple[str, str, int]
) -> None:
    text, question, limit = case
    assert tokens.count(relevant_excerpt(text, Asked(question), limit, tokens.count)) <= limit


@given(
    st.text(string.ascii_letters + " .", max_size=400),
    st.text(string.ascii_letters + " .", max_size=400),
)
def test_a_word_that_occurs_once_is_always_shown(before: str, after: str) -> None:
    text = f"{before}{FILLER * 9}\n20251231 is the day. {FILLER * 9}{after}"
    assert "20251231" in relevant_excerpt(text, Asked("20251231"), 120)


@pytest.mark.parametrize(
    "passage", [FILLER, "我昨天去了市场买了小船", "قایق آبی ", ". ", " ", "x", "\n"]
)
def test_work_grows_no_faster_than_the_text(tokens: TokenCounter, passage: str) -> None:
    def excerpt(chars: int) -> str:
        text = (passage * chars)[:chars]
        return relevant_excerpt(text, Asked("What's the boat called? 小船 قایق"), 200, tokens.count)

    assert ratio(lambda: excerpt(20_000), lambda: excerpt(1_250), QUADRATIC) < QUADRATIC


def test_work_grows_no_faster_than_a_row_of_marks() -> None:
    def excerpt(marks: int) -> str:
        text = "My zebra is called Zoe " + ".!?…" * marks + "x"
        return relevant_excerpt(text, Asked("What is my zebra called?"), 80)

    assert excerpt(8_000).startswith("My zebra")
    assert ratio(lambda: excerpt(8_000), lambda: excerpt(500), QUADRATIC) < QUADRATIC


def test_only_the_beginning_of_a_huge_text_is_searched() -> None:
    def excerpt(more: int) -> str:
        text = "One word after another. " * 2_000 + "The zebra is Zoe. " + "And more. " * more
        return relevant_excerpt(text, Asked("What is the zebra called?"), 80)

    assert "Zoe" not in excerpt(200_000)
    assert calls(lambda: excerpt(200_000)) < 1.1 * calls(lambda: excerpt(100_000))
