"""Embeddings without a model: the words of a text hashed into a vector.

Two texts are near each other if they share content words. The same text gives the same vector in
every process.
"""

import hashlib
import re
import unicodedata
from collections import Counter
from itertools import groupby

import numpy as np
import numpy.typing as npt

DIMENSIONS = 256
_COMPONENTS = 8  # of a vector, per word; several, so that two words rarely collide altogether
_STOP_WORD_WEIGHT = 0.05
_STOP_WORDS = frozenset(
    """
    a about again all also am an and any are as at be because been before being but by can could d
    did do does doing done for from get go got had has have having he her here hers him his how i if
    in into is it its just ll let like m me more most my no nor not of off on once only or other our
    out over own please re s same say said shall she should so some such t tell than thank thanks
    that the their them then there these they this those through to too up us ve very was we were
    what when where which while who whom whose why will with would yes you your yours
    """.split()  # noqa: SIM905 - a list of quoted words is harder to read
)
# Thai to Lao, Burmese, Khmer, kana, Han: scripts that put no space between words
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]+)"
)


def words(text: str) -> list[str]:
    """Return the case-folded words of `text` in order; character bigrams where none are spaced."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    found: list[str] = []
    # Marks belong to a word, too: Hindi's vowels are such.
    for inside, run in groupby(folded, key=lambda char: unicodedata.category(char)[0] in "LMN"):
        if inside:
            for part in _UNSPACED.split("".join(run)):
                found += _bigrams(part) if _UNSPACED.match(part) else [part]
    return [word for word in found if word]


def embed(text: str, dimensions: int = DIMENSIONS) -> npt.NDArray[np.float32]:
    """Return a `(dimensions,)` float32 unit vector; all zeros for a text without any word."""
    vector = np.zeros(dimensions, dtype=np.float64)
    for word, count in Counter(words(text)).items():
        hashed = np.frombuffer(hashlib.blake2b(word.encode()).digest(), dtype="<u4")[:_COMPONENTS]
        weight = _STOP_WORD_WEIGHT if word in _STOP_WORDS else 1.0
        signs = np.where(hashed >> 31, 1.0, -1.0)
        np.add.at(vector, hashed % dimensions, signs * weight * np.sqrt(count))
    length = np.linalg.norm(vector)
    return (vector / length if length else vector).astype(np.float32)


def _bigrams(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(max(1, len(run) - 1))]
