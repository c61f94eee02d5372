"""Token counts and shortening."""

import base64
import hashlib
import random
import struct
import zlib
from collections.abc import Iterator
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
import tiktoken
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

    def __init__(self) -> None:
        super().__init__(vocabulary.vocabulary())
        self.characters = 0

    def _words_of(self, text: str) -> list[str]:
        self.characters += len(text)
        return super()._words_of(text)


@pytest.fixture(scope="module")
def of_tiktoken() -> tiktoken.Encoding:
    ranks = {token: rank for rank, token in enumerate(shipped())}
    return tiktoken.Encoding(
        "o200k_base", pat_str=vocabulary._PATTERN, mergeable_ranks=ranks, special_tokens={}
    )


def shipped() -> Iterator[bytes]:
    """Yield the tokens of the shipped table in the order of their ranks."""
    table = vocabulary._VOCABULARY.read_bytes()
    starts = struct.unpack_from(f"<{vocabulary._TOKENS + 1}I", table)
    stored = table[-starts[-1] :]
    yield from (stored[start:end] for start, end in pairwise(starts))


def table_of(tokens: list[bytes]) -> bytes:
    """Return the table as `TokenCounter` reads it."""
    slots = [0] * (1 << vocabulary._SLOT_BITS)
    for rank, token in enumerate(tokens):
        crc = zlib.crc32(token)
        slot = crc % len(slots)
        while slots[slot]:
            slot = (slot + 1) % len(slots)
        slots[slot] = crc >> vocabulary._RANK_BITS << vocabulary._RANK_BITS | rank + 1
    numbers = [0, *accumulate(map(len, tokens)), *slots]
    return struct.pack(f"<{len(numbers)}I", *numbers) + b"".join(tokens)


def test_vocabulary_and_pattern_are_those_of_tiktoken(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = []

    def without_network(_url: str, expected_hash: str) -> dict[bytes, int]:
        hashes.append(expected_hash)
        return {}

    monkeypatch.setattr(reference, "load_tiktoken_bpe", without_network)
    assert reference.o200k_base()["pat_str"] == vocabulary._PATTERN
    lines = (b"%s %d\n" % (base64.b64encode(token), n) for n, token in enumerate(shipped()))
    assert hashes == [hashlib.sha256(b"".join(lines)).hexdigest()]


def test_the_table_finds_each_token_of_the_vocabulary() -> None:
    assert table_of(list(shipped())) == vocabulary._VOCABULARY.read_bytes()
    encoding = TokenCounter(vocabulary.vocabulary())
    assert [encoding.rank(token) for token in shipped()] == list(range(vocabulary._TOKENS))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("hello world", 2), ("Привет, как дела?", 6), ("<|endoftext|>", 7), ("👩‍👩‍👧", 8)],
)
def test_the_count_is_the_vocabularys(tokens: TokenCounter, text: str, expected: int) -> None:
    assert tokens.count(text) == expected


@given(text=st.text(st.characters(exclude_categories=["Cn"]), max_size=400))
def test_tokens_are_those_of_tiktoken(of_tiktoken: tiktoken.Encoding, text: str) -> None:
    assert_same(of_tiktoken, text)


def test_tokens_of_all_our_sentences_are_those_of_tiktoken(of_tiktoken: tiktoken.Encoding) -> None:
    root = Path(vocabulary.__file__).parents[2]
    for path in [*root.glob("bot/language/*.toml"), *root.glob("bot/*.py"), root / "README.md"]:
        assert_same(of_tiktoken, path.read_text())


def assert_same(of_tiktoken: tiktoken.Encoding, text: str) -> None:
    encoding = TokenCounter(vocabulary.vocabulary())
    ranks = [encoding.rank(token) for token in encoding.tokens(text)]
    assert ranks == of_tiktoken.encode_ordinary(text)


def test_long_words_count_a_token_or_two_more_for_each_further_126_bytes(
    tokens: TokenCounter, of_tiktoken: tiktoken.Encoding
) -> None:
    word = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz", k=12_600))
    exact = len(of_tiktoken.encode_ordinary(word))
    assert exact <= tokens.count(word) <= exact + 2 * 100


@pytest.mark.parametrize("damage", [b"", b"junk", None])
def test_a_damaged_vocabulary_is_refused(tmp_path: Path, damage: bytes | None) -> None:
    file = tmp_path / "table"
    file.write_bytes(vocabulary._VOCABULARY.read_bytes()[:-9] if damage is None else damage)
    with pytest.raises(VocabularyDamaged):
        vocabulary.vocabulary(file)


@pytest.mark.parametrize("character", [" ", "\u3000", "\n", "a", "\ud800"])
def test_a_million_times_one_character_can_be_counted(tokens: TokenCounter, character: str) -> None:
    assert tokens.count(character * 1_200_000) >= 1_200_000 / 128


@given(text=any_text, limit=st.integers(0, 120))
def test_shortened_text_is_within_the_limit(tokens: TokenCounter, text: str, limit: int) -> None:
    assert tokens.count(tokens.shorten(text, limit)) <= limit


@given(text=any_text)
def test_text_that_fits_is_unchanged(tokens: TokenCounter, text: str) -> None:
    limit = max(tokens.count(text), len(text) // 16 + 1)
    assert tokens.shorten(text, limit) == text


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
    shortened = watched.shorten(character * 1_000_000, 500)
    assert SHORTENED in shortened
    assert watched.characters < 50_000
