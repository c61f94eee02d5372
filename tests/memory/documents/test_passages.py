"""Passages: whole sentences in any script, in order, without repeats and without gaps."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.documents import Section, passages
from memory.text.sentences import sentences
from memory.text.tokens import TokenCounter
from tests.work import calls

MOST = 24
TEXTS = st.text(
    st.one_of(
        st.sampled_from('ab. !?\n\t。、！กาข👩\u200d\u0301的は#-(")'),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=400,
)


def without_blanks(text: str) -> str:
    return "".join(text.split())


def cut(tokens: TokenCounter, text: str, most: int = MOST) -> list[str]:
    return [passage.text for passage in passages([Section(text)], tokens, most)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One. ", "Two! ", "Three?"]),
        ("He said “No.” Then he left.", ["He said “No.” ", "Then he left."]),
        ("Use it, e.g. here, at 3.5 km.", ["Use it, e.g. here, at 3.5 km."]),
        ("- a list\n- of things", ["- a list\n", "- of things"]),
        ("彼は来た。「本当？」彼女は言った。", ["彼は来た。", "「本当？」", "彼女は言った。"]),
        ("یک جمله. این چیست؟ دو", ["یک جمله. ", "این چیست؟ ", "دو"]),
        ("एक वाक्य। दूसरा", ["एक वाक्य। ", "दूसरा"]),
        ("", []),
    ],
)
def test_a_text_is_cut_where_its_sentences_end(text: str, expected: list[str]) -> None:
    assert list(sentences(text)) == expected


@given(TEXTS)
def test_sentences_joined_are_the_text(text: str) -> None:
    assert "".join(sentences(text)) == text


@settings(max_examples=60)
@given(text=TEXTS)
def test_passages_hold_a_whole_text_in_order_and_each_fits(tokens: TokenCounter, text: str) -> None:
    seen = "".join(c for c in text if c.isspace() or c.isprintable() or c == "\u200d")
    found = cut(tokens, seen)
    assert without_blanks("".join(found)) == without_blanks(seen)
    assert all(0 < tokens.count(passage) <= MOST for passage in found)


def test_a_passage_holds_as_many_whole_sentences_as_fit(tokens: TokenCounter) -> None:
    text = "The cat sat on the mat. " * 6
    assert cut(tokens, text, 15) == ["The cat sat on the mat. The cat sat on the mat."] * 3


def test_a_script_without_blanks_is_cut_at_its_sentences(tokens: TokenCounter) -> None:
    found = cut(tokens, "今日は朝から雨が降っていました。" * 5, 24)
    assert len(found) > 1
    assert {passage[-1] for passage in found} == {"。"}


def test_text_without_sentences_is_cut_at_blanks(tokens: TokenCounter) -> None:
    words = " ".join(f"word{number}" for number in range(100))
    assert " ".join(cut(tokens, words)) == words


def test_an_emoji_and_an_accent_stay_whole(tokens: TokenCounter) -> None:
    found = cut(tokens, "👩\u200d👩\u200d👧e\u0301" * 40)
    assert not any(passage[0] in "\u200d\u0301" or passage[-1] == "\u200d" for passage in found)


def test_a_passage_belongs_to_one_section_and_names_its_place(tokens: TokenCounter) -> None:
    first, third = Section("First page.", "page 1"), Section("Third.", "page 3")
    assert passages([first, Section(" \n ", "page 2"), third], tokens) == [first, third]


def test_invisible_characters_are_left_out(tokens: TokenCounter) -> None:
    assert cut(tokens, "a\x00b\u00adc\r\n\r\n\r\n  d\x0b\ud800") == ["abc\n\nd ?"]


class CountedCharacters(TokenCounter):
    """Notes how many characters it was asked to count."""

    chars = 0

    def count(self, text: str) -> int:
        self.chars += len(text)
        return super().count(text)


def test_what_comes_after_the_passages_that_are_wanted_is_not_cut() -> None:
    pages = [Section("A page.", f"page {number}") for number in range(100)]
    tokens = CountedCharacters()
    assert passages(pages, tokens, max_count=2) == pages[:2]
    assert tokens.chars < 4 * len("A page.")


@pytest.mark.parametrize(
    "run", [*"a.\n\u0301。", "👩\u200d", '.")', "x\n", "a.\n", "# \n", "\U00012345\U00012311"]
)
def test_each_character_is_counted_few_times(run: str) -> None:
    """If those of short lines are counted 56 times, a file takes up to a minute."""
    tokens, text = CountedCharacters(), run * (24_000 // len(run))
    assert without_blanks("".join(cut(tokens, text, 220))) == without_blanks(text)
    assert tokens.chars < 20 * len(text)
    assert calls(lambda: cut(tokens, 2 * text, 220)) < 2.5 * calls(lambda: cut(tokens, text, 220))
