"""Guesses the languages of many texts at once, as `words.languages_of` does for one text.

Each word gets a number, and what decides a language is kept by this number. So numpy counts votes
for all texts together, in a fifth of the time. It is dropped after the texts are indexed.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from memory.search.growing import Flags, GrowingArray
from memory.search.languages import LANGUAGES
from memory.search.words import (
    ALWAYS_UKRAINIAN,
    CLAIMED_BY,
    LANGUAGES_OF_SCRIPT,
    has_ideograph,
    script_of,
)

Numbers = npt.NDArray[np.int64]
Guess = tuple[int, ...]
"""The languages of a text by script, as in `SCRIPTS`: a position in `CODES`, or one of these:"""

ABSENT: Final = -1
UNCLEAR: Final = -2

CODES: Final = tuple(LANGUAGES)
SCRIPTS: Final = (*LANGUAGES_OF_SCRIPT, "")
_SCRIPT_NUMBERS = {script: number for number, script in enumerate(SCRIPTS)}
_CLAIMS = ((), *sorted(set(CLAIMED_BY.values())))
"""The sets of languages that claim words; the first is of words that none claims."""
_CLAIM_NUMBERS = {claimed: number for number, claimed in enumerate(_CLAIMS)}
_VOTES = np.array([[code in claimed for code in CODES] for claimed in _CLAIMS], np.float32)


class Vocabulary(dict[str, int]):
    """The number of each word; `words` has them by their numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self._scripts = GrowingArray(np.int64)
        self._claims = GrowingArray(np.int64)
        self._is_ukrainian = GrowingArray(np.bool_)
        self._has_ideograph = GrowingArray(np.bool_)

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        self.words.append(word)
        self._scripts.append(_SCRIPT_NUMBERS[script_of(word)])
        self._claims.append(_CLAIM_NUMBERS[CLAIMED_BY.get(word, ())])
        self._is_ukrainian.append(not word.isascii() and not ALWAYS_UKRAINIAN.isdisjoint(word))
        self._has_ideograph.append(has_ideograph(word))
        return number

    def guesses(self, numbers: Numbers, texts: Numbers, count: int) -> list[Guess]:
        """Guess the languages of `count` texts from all their words and the texts of these.

        A language is `UNCLEAR` if no language of the script wins, and `ABSENT` if the text does not
        have the script.
        """
        claims = texts * len(_CLAIMS) + self._claims.view[numbers]
        votes = _counted(claims, count, len(_CLAIMS)).astype(np.float32) @ _VOTES
        written = texts * len(SCRIPTS) + self._scripts.view[numbers]
        is_there = _counted(written, count, len(SCRIPTS)) > 0
        guesses = np.full((count, len(SCRIPTS)), ABSENT)
        for at in np.flatnonzero(is_there.any(0)):
            said = _most_voted(votes, LANGUAGES_OF_SCRIPT.get(SCRIPTS[at], ()))
            if SCRIPTS[at] == "cyrillic":
                is_ukrainian = _any(self._is_ukrainian.view[numbers], texts, count)
                said[is_ukrainian] = CODES.index("uk")
            guesses[:, at] = np.where(is_there[:, at], said, ABSENT)
        return [*map(tuple, guesses.tolist())]

    def have_ideographs(self, numbers: Numbers, texts: Numbers, count: int) -> list[bool]:
        """Return of each text whether it has Chinese characters."""
        found: list[bool] = _any(self._has_ideograph.view[numbers], texts, count).tolist()
        return found


def _counted(pairs: Numbers, rows: int, columns: int) -> Numbers:
    """Count pairs, which are `row * columns + column`; return `(rows, columns)`."""
    return np.bincount(pairs, minlength=rows * columns).reshape(rows, columns)


def _most_voted(votes: npt.NDArray[np.float32], candidates: Sequence[str]) -> Numbers:
    """Return of each text which of these languages has most votes, `UNCLEAR` if none or several."""
    if len(candidates) < 2:
        return np.full(len(votes), CODES.index(candidates[0]) if candidates else UNCLEAR)
    columns = np.array([CODES.index(code) for code in candidates])
    given = votes[:, columns]
    top = given.max(1)
    is_clear = (top > 0) & ((given == top[:, None]).sum(1) == 1)
    return np.where(is_clear, columns[given.argmax(1)], UNCLEAR)


def _any(flags: Flags, texts: Numbers, count: int) -> Flags:
    """Return of each text whether one of its words has the flag."""
    found: Flags = np.bincount(texts[flags], minlength=count) > 0
    return found
