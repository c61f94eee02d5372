"""Token counts and shortening."""

import gzip
import random
from collections.abc import Iterator
from pathlib import Path
from string import ascii_lowercase

import pytest
import tiktoken_ext.openai_public as reference  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from memory.text import tokens as vocabulary
from memory.text.tokens import SHORTENED, TokenCounter, VocabularyDamaged

# With lone surrogates, which a Python string may hold and UTF-8 may not.
any_text = st.text(st.characters(exclude_categories=()), max_size=400) | st.text(
    "ab 1.\n", max_size=400
)


class WatchedCounter(TokenCounter):
    """A counter that counts the characters it reads."""

    characters = 0

    def _encoded(self, text: str) -> Iterator[list[int]]:
        self.characters += len(text)
        return super()._encoded(text)


def test_vocabulary_and_pattern_are_those_of_tiktoken(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = []

    def without_network(_url: str, expected_hash: str) -> dict[bytes, int]:
        hashes.append(expected_hash)
        return {}

    monkeypatch.setattr(reference, "load_tiktoken_bpe", without_network)
    assert reference.o200k_base()["pat_str"] == vocabulary._PATTERN
    assert hashes == [vocabulary._SHA256]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("hello world", 2), ("Привет, как дела?", 6), ("<|endoftext|>", 7), ("👩‍👩‍👧", 8)],
)
def test_the_count_is_the_vocabularys(tokens: TokenCounter, text: str, expected: int) -> None:
    assert tokens.count(text) == expected


@given(text=any_text | st.text("aeqjxz' rtv"))
def test_no_text_has_more_tokens_than_it_has_at_most(tokens: TokenCounter, text: str) -> None:
    assert tokens.count(text) <= tokens.at_most(text)


def test_each_pair_of_the_letters_that_count_less_is_a_token(tokens: TokenCounter) -> None:
    letters = [each for each in ascii_lowercase if vocabulary._LETTERS.search(each * 3)]
    assert len(letters) == 21
    assert {tokens.count(one + other) for one in letters for other in letters} == {1}


def test_a_long_text_counts_a_token_or_two_more_for_each_piece(tokens: TokenCounter) -> None:
    word = "".join(random.Random(1).choices(ascii_lowercase, k=99_999))
    exact = len(vocabulary.encoding().encode_ordinary(word))
    assert exact <= tokens.count(word) <= exact + 2 * 5


@pytest.mark.parametrize("damage", [b"", b"junk", gzip.compress(b"IQ== 0", mtime=0), None])
def test_a_damaged_vocabulary_is_refused(tmp_path: Path, damage: bytes | None) -> None:
    file = tmp_path / "vocabulary"
    file.write_bytes(vocabulary._VOCABULARY.read_bytes()[:-9] if damage is None else damage)
    with pytest.raises(VocabularyDamaged):
        vocabulary._load(file)


@pytest.mark.parametrize("character", [" ", "\t", "\u3000", "\n", "a", "\ud800"])
def test_a_million_times_one_character_can_be_counted(tokens: TokenCounter, character: str) -> None:
    assert tokens.count(character * 1_200_000) >= 1_200_000 / 128


@given(text=any_text, limit=st.integers(0, 120))
def test_shortened_text_is_within_the_limit(tokens: TokenCounter, text: str, limit: int) -> None:
    assert tokens.count(tokens.shorten(text, limit)) <= limit


@given(text=any_text)
def test_text_that_fits_is_unchanged(tokens: TokenCounter, text: str) -> None:
    assert tokens.shorten(text, max(tokens.count(text), len(text) // 16 + 1)) == text


@given(text=st.text(min_size=60, max_size=400), limit=st.integers(8, 40))
def test_shortened_text_has_head_mark_and_tail(tokens: TokenCounter, text: str, limit: int) -> None:
    shortened = tokens.shorten(text, limit)
    if shortened != text:
        head, mark, tail = shortened.partition(SHORTENED)
        assert mark == SHORTENED
        assert text.startswith(head.rstrip())
        assert text.endswith(tail.lstrip())


def test_the_head_gets_two_thirds(tokens: TokenCounter) -> None:
    shortened = tokens.shorten(" ".join(["head"] * 500 + ["tail"] * 500), 100)
    assert shortened.count("head") == pytest.approx(2 * shortened.count("tail"), abs=3)


def test_a_limit_that_is_too_small_for_the_mark_gives_an_empty_text(tokens: TokenCounter) -> None:
    assert [tokens.shorten("a long text indeed", limit) for limit in (-1, 0, 1)] == ["", "", ""]


@pytest.mark.parametrize("character", ["x", " ", "\n", "ж", "👩", "\ud800"])
def test_shortening_reads_only_as_much_as_the_limit_needs(character: str) -> None:
    watched = WatchedCounter()
    assert SHORTENED in watched.shorten(character * 1_000_000, 500)
    assert watched.characters < 50_000
