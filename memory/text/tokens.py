"""Counts and shortens text in tokens; the only module that imports tiktoken.

The vocabulary (o200k, that of OpenAI's current models; close enough for a budget elsewhere) is a
file in this package, so nothing is downloaded at run time. Special tokens that people type are
ordinary text.
"""

import asyncio
import binascii
import functools
import gzip
import hashlib
import zlib
from importlib import resources
from typing import Self

import tiktoken

SHORTENED = "[… shortened]"

# Tokens of a message besides its text: its role and delimiters. Chat templates need three or four
# (https://cookbook.openai.com/examples/how_to_count_tokens_with_tiktoken).
MESSAGE_OVERHEAD = 4

_VOCABULARY = "o200k_base.tiktoken.gz"

# The next three are copied from `tiktoken_ext.openai_public.o200k_base` of tiktoken 0.14.
_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
_SPECIAL = {"<|endoftext|>": 199_999, "<|endofprompt|>": 200_018}
_PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*|"
    r"\s*[\r\n]+|"
    r"\s+(?!\S)|"
    r"\s+"
)

# A run of a million blanks overflows the stack of tiktoken's regex engine, and no
# `except Exception` catches that panic. A slice of this length is safe; it takes 40 ms at most.
_SLICE_CHARS = 100_000

# Prose has four or five characters a token. A text with more than this many for each allowed token
# counts as too long without being read to its end.
_CHARS_PER_TOKEN = 16


class VocabularyDamaged(Exception):
    """Raised if the vocabulary file does not have the expected hash."""


class TokenCounter:
    """Counts and shortens text by the o200k vocabulary; a process makes one and shares it.

    Loading takes 0.6 s and 50 MB (27 MB more while it loads). A thousand tokens of prose then take
    0.3 ms.
    """

    def __init__(self, encoding: tiktoken.Encoding) -> None:
        self._encoding = encoding

    @classmethod
    async def load(cls) -> Self:
        """Load the vocabulary in a thread; raise `VocabularyDamaged` if its hash is wrong."""
        return cls(await asyncio.to_thread(_shipped_encoding))

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`.

        It is exact up to 100,000 characters. Each further 100,000 may count a token or two more.
        """
        return sum(
            len(self._encoding.encode_ordinary(text[start : start + _SLICE_CHARS]))
            for start in range(0, len(text), _SLICE_CHARS)
        )

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
            head = self._head(text, room - room // 3)
            tail = self._tail(text[len(head) :], room // 3)
            shortened = " ".join(part for part in (head.rstrip(), mark, tail.lstrip()) if part)
            excess = self.count(shortened) - limit
            if excess <= 0:
                return shortened
            room -= excess  # the joints may cost a token or two
        return ""

    def _head(self, text: str, tokens: int) -> str:
        encoded = self._encoding.encode_ordinary(text[: tokens * _CHARS_PER_TOKEN])
        return self._decode(encoded[:tokens])

    def _tail(self, text: str, tokens: int) -> str:
        start = max(0, len(text) - tokens * _CHARS_PER_TOKEN)
        encoded = self._encoding.encode_ordinary(text[start:])
        return self._decode(encoded[max(0, len(encoded) - tokens) :])

    def _decode(self, tokens: list[int]) -> str:
        # A cut may leave part of a character at the edge, which is dropped.
        return self._encoding.decode_bytes(tokens).decode("utf-8", errors="ignore")


@functools.cache
def _shipped_encoding() -> tiktoken.Encoding:
    """Load the vocabulary, once per process."""
    return _encoding(resources.files(__package__).joinpath(_VOCABULARY).read_bytes())


def _encoding(packed: bytes) -> tiktoken.Encoding:
    ranks = _ranks(packed)
    encoding = tiktoken.Encoding(
        "o200k_base", pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens=_SPECIAL
    )
    ranks.clear()  # the encoding has its own copy, and this one takes 27 MB
    return encoding


def _ranks(packed: bytes) -> dict[bytes, int]:
    """Return the rank of each token's bytes; raise `VocabularyDamaged`."""
    try:
        lines = gzip.decompress(packed)
    except (OSError, EOFError, zlib.error) as error:
        raise VocabularyDamaged(f"memory/{_VOCABULARY} cannot be unpacked") from error
    if hashlib.sha256(lines).hexdigest() != _SHA256:
        raise VocabularyDamaged(f"memory/{_VOCABULARY} has not the SHA-256 {_SHA256}")
    # A line holds a token and its rank, counted from 0. Starts wait for this, so C does the work.
    tokens = lines.split()[::2]
    return dict(zip(map(binascii.a2b_base64, tokens), range(len(tokens)), strict=True))
