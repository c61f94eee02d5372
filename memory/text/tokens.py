"""Counts and shortens text in tokens; the only owner of tiktoken.

The vocabulary (o200k, that of OpenAI's current models; close enough for a budget elsewhere) is a
file in this package, so nothing is downloaded at run time. It takes 43 MB and 0.4 s. So a process
loads it with its first turn. Workers that share memory load it before the fork. Special tokens
that people type are ordinary text.
"""

import asyncio
import functools
import gzip
import hashlib
import re
import threading
import zlib
from binascii import a2b_base64
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import tiktoken

SHORTENED = "[… shortened]"

# Tokens of a message besides its text: its role and delimiters. Chat templates need three or four
# (https://cookbook.openai.com/examples/how_to_count_tokens_with_tiktoken).
MESSAGE_OVERHEAD = 4

# We keep the whole vocabulary, because a part of it counts too many tokens in our sentences of
# eleven languages: the first 150,000 of its 200,000 tokens save 5 MB and count 0.5 to 4.7 % more,
# the first 100,000 save 19 MB and count 2 to 13 % more, the first 50,000 28 MB and 5 to 28 %.
_VOCABULARY = Path(__file__).with_name("o200k_base.tiktoken.gz")

# Both are copied from `tiktoken_ext.openai_public.o200k_base` of tiktoken 0.14.
_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
_PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*|"
    r"\s*[\r\n]+|"
    r"\s+(?!\S)|"
    r"\s+"
)

_PIECE_CHARS = 20_000
"""A longer text is read in pieces, because tiktoken panics on a million spaces in a row."""

_LETTERS = re.compile("(?<!')[a-il-pr-wy]{3,}")
_LOADING = threading.Lock()

# Prose has four or five characters a token. A text with more than this many for each allowed token
# counts as too long without being read to its end.
_CHARS_PER_TOKEN = 16


class VocabularyDamaged(Exception):
    """Raised if the vocabulary file does not have the expected hash."""


class TokenCounter:
    """Counts and shortens text by byte-pair encoding; a process makes one and shares it.

    Its methods raise `VocabularyDamaged` if the vocabulary is loaded first by them and is damaged.
    """

    @classmethod
    async def load(cls) -> Self:
        """Load the vocabulary in a thread; raise `VocabularyDamaged` if its hash is wrong."""
        if not _load.cache_info().currsize:
            await asyncio.to_thread(encoding)
        return cls()

    @staticmethod
    def at_most(text: str) -> int:
        """Return a number of tokens that `text` never exceeds, without the vocabulary.

        A token has a byte or more. Each pair of the letters of `_LETTERS` is a token, so no two
        tokens beside each other are single letters: three letters are two tokens at most.
        """
        letters = sum(len(run) // 3 for run in _LETTERS.findall(text))
        return len(text.encode(errors="replace")) - letters

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`.

        It is exact up to 20,000 characters; beyond, each further 20,000 may count one or two more.
        A thousand tokens of prose take about half a millisecond.
        """
        if len(text) <= _PIECE_CHARS:
            return len(encoding().encode_ordinary(text))
        return sum(map(len, self._encoded(text)))

    def shorten(self, text: str, limit: int) -> str:
        """Return `text` in at most `limit` tokens, `SHORTENED` in place of the removed middle.

        Two thirds of the room go to the beginning and one third to the end, because a long text
        begins with what it is and ends with what is wanted. Characters stay whole. The result is ""
        if the limit is too small for the mark. The work depends on `limit`, not on `text`.
        """
        if 2 * len(text) <= 3 * limit and self.at_most(text) <= limit:
            return text  # most texts, without reading them
        if len(text) <= limit * _CHARS_PER_TOKEN and self.count(text) <= limit:
            return text
        room = limit - self.count(SHORTENED)
        while room >= 0:
            first, last = room - room // 3, room // 3
            head = _decoded(self._ranks(text[: first * _CHARS_PER_TOKEN])[:first])
            end = max(len(head), len(text) - last * _CHARS_PER_TOKEN)
            ranks = self._ranks(text[end:])
            tail = _decoded(ranks[max(0, len(ranks) - last) :])
            shortened = " ".join(part for part in (head.rstrip(), SHORTENED, tail.lstrip()) if part)
            excess = self.count(shortened) - limit
            if excess <= 0:
                return shortened
            room -= excess  # the joints may cost a token or two
        return ""

    def _ranks(self, text: str) -> list[int]:
        return [rank for piece in self._encoded(text) for rank in piece]

    def _encoded(self, text: str) -> Iterator[list[int]]:
        for at in range(0, len(text), _PIECE_CHARS):
            yield encoding().encode_ordinary(text[at : at + _PIECE_CHARS])


def _decoded(ranks: list[int]) -> str:
    # A cut may leave part of a character at the edge, which is dropped.
    return encoding().decode(ranks, errors="ignore")


def encoding() -> "tiktoken.Encoding":
    """Return the encoding, which is loaded once per process; raise `VocabularyDamaged`."""
    with _LOADING:
        return _load(_VOCABULARY)


@functools.cache
def _load(path: Path) -> "tiktoken.Encoding":
    import tiktoken  # noqa: PLC0415 - see above

    try:
        vocabulary = gzip.decompress(path.read_bytes())
    except (EOFError, gzip.BadGzipFile, zlib.error):
        vocabulary = b""
    if hashlib.sha256(vocabulary).hexdigest() != _SHA256:
        raise VocabularyDamaged(f"{path.name} has not the SHA-256 {_SHA256} when unpacked")
    tokens = map(bytes.split, BytesIO(vocabulary))  # a list of all lines would take 12 MB
    ranks = {a2b_base64(token): int(rank) for token, rank in tokens}
    made = tiktoken.Encoding(
        "o200k_base", pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens={}
    )
    ranks.clear()  # tiktoken has copied it, and needs it only to be pickled
    return made
