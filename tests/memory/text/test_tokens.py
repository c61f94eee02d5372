"""Token counts and shortening."""

import gzip
from importlib import resources
from typing import cast

import pytest
import tiktoken
import tiktoken_ext.openai_public as reference  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from memory.text import tokens as vocabulary
from memory.text.tokens import SHORTENED, TokenCounter, VocabularyDamaged

PACKED = resources.files("memory.text").joinpath("o200k_base.tiktoken.gz").read_bytes()

# With lone surrogates, which a Python string may hold and UTF-8 may not.
any_text = st.text(st.characters(exclude_categories=()), max_size=400) | st.text(
    "ab 1.\n", max_size=400
)


class WatchedEncoding:
    """A real encoding that counts the characters it gets."""

    def __init__(self, encoding: tiktoken.Encoding) -> None:
        self._encoding = encoding
        self.characters = 0

    def encode_ordinary(self, text: str) -> list[int]:
        self.characters += len(text)
        return self._encoding.encode_ordinary(text)

    def decode_bytes(self, encoded: list[int]) -> bytes:
        return self._encoding.decode_bytes(encoded)


def test_vocabulary_and_pattern_are_those_of_tiktoken(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = []

    def without_network(_url: str, expected_hash: str) -> dict[bytes, int]:
        hashes.append(expected_hash)
        return {}

    monkeypatch.setattr(reference, "load_tiktoken_bpe", without_network)
    assert reference.o200k_base() == {
        "name": "o200k_base",
        "pat_str": vocabulary._PATTERN,
        "mergeable_ranks": {},
        "special_tokens": vocabulary._SPECIAL,
    }
    assert hashes == [vocabulary._SHA256]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("hello world", 2), ("Привет, как дела?", 6), ("<|endoftext|>", 7), ("👩‍👩‍👧", 8)],
)
def test_the_count_is_that_of_the_vocabulary(
    tokens: TokenCounter, text: str, expected: int
) -> None:
    assert tokens.count(text) == expected


@pytest.mark.parametrize(
    "packed", [b"", b"junk", PACKED[:1000], PACKED[:-9], gzip.compress(b"YQ== 0", mtime=0)]
)
def test_a_damaged_vocabulary_is_refused(packed: bytes) -> None:
    with pytest.raises(VocabularyDamaged):
        vocabulary._ranks(packed)


@pytest.mark.parametrize("character", [" ", "\u3000", "\n", "a", "\ud800"])
def test_a_million_times_one_character_can_be_counted(tokens: TokenCounter, character: str) -> None:
    assert tokens.count(character * 1_200_000) > 1_200_000 / 128


@given(text=any_text, limit=st.integers(0, 120))
def test_shortened_text_is_within_the_limit(tokens: TokenCounter, text: str, limit: int) -> None:
    assert tokens.count(tokens.shorten(text, limit)) <= limit


@given(text=any_text)
def test_text_that_fits_is_unchanged(tokens: TokenCounter, text: str) -> None:
    limit = max(tokens.count(text), len(text) // 16 + 1)
    assert tokens.shorten(text, limit) == text


@given(text=st.text(min_size=60, max_size=400), limit=st.integers(8, 40))
def test_shortened_text_consists_of_head_mark_and_tail(
    tokens: TokenCounter, text: str, limit: int
) -> None:
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
def test_shortening_reads_only_as_much_as_the_limit_needs(
    tokens: TokenCounter, character: str
) -> None:
    watched = WatchedEncoding(tokens._encoding)
    watching = TokenCounter(cast("tiktoken.Encoding", watched))
    shortened = watching.shorten(character * 1_000_000, 500)
    assert SHORTENED in shortened
    assert watched.characters < 50_000
