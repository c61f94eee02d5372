"""Counting and shortening text in tokens; the only module that knows tiktoken.

The vocabulary (o200k, of OpenAI's current models; close enough for a budget elsewhere) lies beside
this file, so that nothing is downloaded or cached at run time. Text is always data here: special
tokens typed by people are ordinary characters. What a budget is spent on is decided elsewhere.
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

# What a message costs beside its text: the role and its delimiters. Servers' chat templates spend
# three or four (https://cookbook.openai.com/examples/how_to_count_tokens_with_tiktoken).
MESSAGE_OVERHEAD = 4

_VOCABULARY = "o200k_base.tiktoken.gz"

# The three below are tiktoken's own: `tiktoken_ext.openai_public.o200k_base` of tiktoken 0.14.
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

# A run of a million blanks overflows the stack of tiktoken's regex engine, and the panic passes
# every `except Exception`; a slice of this length is safe and takes some 40 ms at worst.
_SLICE_CHARS = 100_000

# Prose has four or five characters a token, so a text of more than this many for each allowed token
# is taken as too long without being read to its end.
_CHARS_PER_TOKEN = 16


class VocabularyDamaged(Exception):  # noqa: N818 - says when, not that it is an error
    """Raised when the vocabulary beside this file is not the one its hash names."""


class TokenCounter:
    """Counts and shortens text by the o200k vocabulary; one is made at start and shared.

    Costs 0.6 s and 50 MB to load (27 MB more while it loads), then 0.3 ms for a thousand tokens of
    prose.
    """

    def __init__(self, encoding: tiktoken.Encoding) -> None:
        self._encoding = encoding

    @classmethod
    async def load(cls) -> Self:
        """Load the vocabulary in a thread; raise `VocabularyDamaged` when its hash is wrong."""
        return cls(await asyncio.to_thread(_shipped_encoding))

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`.

        Exact up to 100,000 characters; beyond, each further 100,000 may add a token or two.
        """
        return sum(
            len(self._encoding.encode_ordinary(text[start : start + _SLICE_CHARS]))
            for start in range(0, len(text), _SLICE_CHARS)
        )

    def shorten(self, text: str, limit: int, mark: str = SHORTENED) -> str:
        """Return `text` in at most `limit` tokens, with `mark` where something was left out.

        Two thirds of the room go to the beginning and one third to the end: a long text says at
        its beginning what it is and at its end what is wanted. Characters stay whole. A limit that
        is too small for the mark leaves nothing. The work depends on `limit`, not on `text`.
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
            room -= excess  # the seams may cost a token or two
        return ""

    def _head(self, text: str, tokens: int) -> str:
        encoded = self._encoding.encode_ordinary(text[: tokens * _CHARS_PER_TOKEN])
        return self._decode(encoded[:tokens])

    def _tail(self, text: str, tokens: int) -> str:
        start = max(0, len(text) - tokens * _CHARS_PER_TOKEN)
        encoded = self._encoding.encode_ordinary(text[start:])
        return self._decode(encoded[max(0, len(encoded) - tokens) :])

    def _decode(self, tokens: list[int]) -> str:
        # A cut may leave a part of a character at the edge: it goes.
        return self._encoding.decode_bytes(tokens).decode("utf-8", errors="ignore")


@functools.cache
def _shipped_encoding() -> tiktoken.Encoding:
    """Load the vocabulary, once a process."""
    return _encoding(resources.files(__package__).joinpath(_VOCABULARY).read_bytes())


def _encoding(packed: bytes) -> tiktoken.Encoding:
    ranks = _ranks(packed)
    encoding = tiktoken.Encoding(
        "o200k_base", pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens=_SPECIAL
    )
    ranks.clear()  # the encoding has its own compiled copy; this one would hold 27 MB for nothing
    return encoding


def _ranks(packed: bytes) -> dict[bytes, int]:
    """Return the rank of each token's bytes; raise `VocabularyDamaged`."""
    try:
        lines = gzip.decompress(packed)
    except (OSError, EOFError, zlib.error) as error:
        raise VocabularyDamaged(f"memory/{_VOCABULARY} cannot be unpacked") from error
    if hashlib.sha256(lines).hexdigest() != _SHA256:
        raise VocabularyDamaged(f"memory/{_VOCABULARY} has not the SHA-256 {_SHA256}")
    # Lines of token and rank, which counts from 0; read in C throughout, for each start waits.
    tokens = lines.split()[::2]
    return dict(zip(map(binascii.a2b_base64, tokens), range(len(tokens)), strict=True))
