"""The panel says in plain words why an older message was found."""

import pytest

from bot.playground.inspector import FoundMessage
from memory.message import Message
from memory.search.message_search import SearchResult

KEY = Message(3, 2, "user", "The extra key is under the <b>pot</b>", 1.0, sender_name="Maya")
REPLY = Message(4, 2, "assistant", "Noted", 2.0)


def found(**parts: float | bool) -> SearchResult:
    return SearchResult((KEY, REPLY), 1.0, 3, **parts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("result", "question", "reasons"),
    [
        (
            found(lexical=1.0),
            "Where are my keys?",
            [("By words", "it contains “key”, as your question does")],
        ),
        (
            found(lexical=1.0),
            "Is there a spare one?",
            [("By words", "“extra” means the same as a word of your question")],
        ),
        (
            found(dense=1.0),
            "Is there a spare one?",
            [("By meaning", "“extra” means the same as a word of your question")],
        ),
        (
            found(lexical=1.0, is_boosted=True),
            "Flowers?",
            [("By a neighbor", "a message right next to it matches your question")],
        ),
        (
            found(lexical=1.0),
            "Flowers?",
            [("By its session", "other messages of the same session match your question")],
        ),
    ],
)
def test_each_way_of_finding_has_its_reason(
    result: SearchResult, question: str, reasons: list[tuple[str, str]]
) -> None:
    assert list(FoundMessage(result, question, "").reasons) == reasons


def test_shared_words_are_marked_and_the_rest_is_escaped() -> None:
    each = FoundMessage(found(lexical=1.0), "Which pot hides the key?", "")
    marked = "The extra <mark>key</mark> is under the &lt;b&gt;<mark>pot</mark>&lt;/b&gt;"
    assert each.marked(KEY.text) == marked


def test_a_message_that_the_answer_repeats_is_in_the_answer() -> None:
    assert FoundMessage(found(), "", "“The extra key is under the <b>pot</b>”").is_quoted
    assert not FoundMessage(found(), "", "I do not know.").is_quoted
