"""Counts and shortens text in tokens; the only module that imports regex.

The vocabulary (o200k, that of OpenAI's current models; close enough for a budget elsewhere) is a
file in this package, so nothing is downloaded at run time. It is a table that is read where it
lies: a process does not load it, and all processes of a machine share it. Special tokens that
people type are ordinary text.
"""

import asyncio
import functools
import hashlib
import mmap
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Self

import regex

SHORTENED = "[… shortened]"

# Tokens of a message besides its text: its role and delimiters. Chat templates need three or four
# (https://cookbook.openai.com/examples/how_to_count_tokens_with_tiktoken).
MESSAGE_OVERHEAD = 4

_VOCABULARY = Path(__file__).with_name("o200k_base.table")
_SHA256 = "400338289988dd1806c56e2b14270e5daf6d534c1bf59ab478ead6badfab1681"

# Copied from `tiktoken_ext.openai_public.o200k_base` of tiktoken 0.14.
_PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*|"
    r"\s*[\r\n]+|"
    r"\s+(?!\S)|"
    r"\s+"
)

_TOKENS = 199_998
_SLOT_BITS = 19
_RANK_BITS = 18
_UNKNOWN = 1 << _RANK_BITS

_MAX_WORD_CHARS = 128
"""The longest token. Longer words are cut, because the work grows with the square of the length."""
_MAX_WORD_BYTES = 126
_CACHED_WORDS = _CACHED_PARTS = 8_192

# Prose has four or five characters a token. A text with more than this many for each allowed token
# counts as too long without being read to its end.
_CHARS_PER_TOKEN = 16


class VocabularyDamaged(Exception):
    """Raised if the vocabulary file does not have the expected hash."""


class TokenCounter:
    """Counts and shortens text by byte-pair encoding; a process makes one and shares it.

    The table of all tokens has three parts of little-endian 32-bit numbers and bytes: where each
    token begins; 2^19 slots, found by the CRC-32 of a token, each with the token's rank + 1 and the
    upper bits of the CRC; and all tokens in the order of their ranks.
    """

    def __init__(self, table: memoryview) -> None:
        slots_at, tokens_at = 4 * (_TOKENS + 1), 4 * (_TOKENS + 1 + (1 << _SLOT_BITS))
        self._starts = table[:slots_at].cast("I")
        self._slots = table[slots_at:tokens_at].cast("I")
        self._bytes = table[tokens_at:]
        self._words = regex.compile(_PATTERN)
        self._split = functools.lru_cache(_CACHED_WORDS)(self._split_word)
        self._rank = functools.lru_cache(_CACHED_PARTS)(self.rank)

    @classmethod
    async def load(cls) -> Self:
        """Open the vocabulary in a thread; raise `VocabularyDamaged` if its hash is wrong."""
        return cls(await asyncio.to_thread(vocabulary))

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`.

        It is exact, except that a word of more than 126 bytes may count a token or two more for
        each further 126. A thousand tokens of prose take about half a millisecond.
        """
        return sum(map(len, map(self._split, self._words_of(text))))

    def shorten(self, text: str, limit: int, mark: str = SHORTENED) -> str:
        """Return `text` in at most `limit` tokens, with `mark` in place of the removed middle.

        Two thirds of the room go to the beginning and one third to the end, because a long text
        begins with what it is and ends with what is wanted. Characters stay whole. The result is ""
        if the limit is too small for the mark. The work depends on `limit`, not on `text`.
        """
        if len(text) <= limit * _CHARS_PER_TOKEN and self.count(text) <= limit:
            return text
        room = limit - self.count(mark)
        while room >= 0:
            count = room - room // 3
            head = _decoded(self.tokens(text[: count * _CHARS_PER_TOKEN])[:count])
            tail = self._tail(text[len(head) :], room // 3)
            shortened = " ".join(part for part in (head.rstrip(), mark, tail.lstrip()) if part)
            excess = self.count(shortened) - limit
            if excess <= 0:
                return shortened
            room -= excess  # the joints may cost a token or two
        return ""

    def tokens(self, text: str) -> list[bytes]:
        """Return the tokens; together they are `text` in UTF-8."""
        return [token for word in self._words_of(text) for token in self._split(word)]

    def rank(self, token: bytes) -> int:
        """Return the rank of a token, or 2^18 if the vocabulary does not have it."""
        crc = zlib.crc32(token)
        slot = crc & ((1 << _SLOT_BITS) - 1)
        while found := self._slots[slot]:
            if found >> _RANK_BITS == crc >> _RANK_BITS:
                rank = (found & (_UNKNOWN - 1)) - 1
                if self._bytes[self._starts[rank] : self._starts[rank + 1]] == token:
                    return rank
            slot = (slot + 1) & ((1 << _SLOT_BITS) - 1)
        return _UNKNOWN

    def _tail(self, text: str, tokens: int) -> str:
        start = max(0, len(text) - tokens * _CHARS_PER_TOKEN)
        encoded = self.tokens(text[start:])
        return _decoded(encoded[max(0, len(encoded) - tokens) :])

    def _words_of(self, text: str) -> list[str]:
        words: list[str] = self._words.findall(text)
        if max(map(len, words), default=0) <= _MAX_WORD_CHARS:
            return words
        step = _MAX_WORD_CHARS
        return [word[at : at + step] for word in words for at in range(0, len(word), step)]

    def _split_word(self, word: str) -> tuple[bytes, ...]:
        try:
            whole = word.encode()
        except UnicodeEncodeError:
            whole = word.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
        if self.rank(whole) < _UNKNOWN:
            return (whole,)
        tokens: list[bytes] = []
        for at in range(0, len(whole), _MAX_WORD_BYTES):
            tokens += self._merged(whole[at : at + _MAX_WORD_BYTES])
        return tuple(tokens)

    def _merged(self, word: bytes) -> list[bytes]:
        """Join the pair with the lowest rank, the first of equals, until no pair has a rank."""
        parts = [word[at : at + 1] for at in range(len(word))]
        ranks = [self._rank(left + right) for left, right in pairwise(parts)]
        while ranks and (lowest := min(ranks)) < _UNKNOWN:
            at = ranks.index(lowest)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
            del ranks[at]
            if at:
                ranks[at - 1] = self._rank(parts[at - 1] + parts[at])
            if at < len(ranks):
                ranks[at] = self._rank(parts[at] + parts[at + 1])
        return parts


def _decoded(tokens: list[bytes]) -> str:
    # A cut may leave part of a character at the edge, which is dropped.
    return b"".join(tokens).decode("utf-8", errors="ignore")


@functools.cache
def vocabulary(path: Path = _VOCABULARY) -> memoryview:
    """Open the table of all tokens, once per process; raise `VocabularyDamaged`."""
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != _SHA256:
            raise VocabularyDamaged(f"{path.name} has not the SHA-256 {_SHA256}")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
