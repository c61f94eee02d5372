"""What the words of many texts say about them: their languages, and whether they tell a time.

Each word gets a number, and what it says is kept by this number. So numpy counts for all texts
together what `words.languages_of` counts for one, in a fifth of the time. A vocabulary is dropped
after its texts are indexed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt

from memory.search.arrays import Flags, GrowingArray
from memory.search.question import tells_time
from memory.search.words import (
    ALWAYS_UKRAINIAN,
    CLAIMED_BY,
    IDEOGRAPH,
    LANGUAGES,
    LANGUAGES_OF_SCRIPT,
    UNKNOWN,
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


@dataclass(frozen=True, slots=True)
class NumberedWords:
    """All words of several texts by their numbers, `(words,)`, and which text each stands in.

    The other fields have one value for each text, `(texts,)`.
    """

    numbers: Numbers
    texts: Numbers
    lengths: Numbers  # how many words it has
    are_ukrainian: Flags  # a word has a letter of Ukrainian only
    have_ideographs: Flags  # a word has Chinese characters
    tell_times: Flags  # a word is a number, or stands for a time


class Vocabulary(dict[str, int]):
    """The number of each word; `words` has them by their numbers.

    `runs` has the run of each word in a set of languages: `terms[bounds[n] : bounds[n + 1]]` are
    its index terms in run n. Run 0 stands for words not seen before.
    """

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.runs: dict[int, GrowingArray[np.int64]] = {}
        self.bounds, self.terms = GrowingArray(np.int64), GrowingArray(np.int64)
        self.bounds.extend([0, 0])
        self._scripts = GrowingArray(np.int64)
        self._claims = GrowingArray(np.int64)
        self._is_ukrainian = GrowingArray(np.bool_)
        self._has_ideograph = GrowingArray(np.bool_)
        self._tells_time = GrowingArray(np.bool_)

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        self.words.append(word)
        return number

    def read(self, texts: Iterable[Sequence[str]]) -> NumberedWords:
        """Give each folded word its number, while the words of its text are in the CPU cache."""
        counted = list[int]()

        def words() -> Iterator[Sequence[str]]:
            for text in texts:
                counted.append(len(text))
                yield text

        numbers, lengths = self.numbers(chain.from_iterable(words())), np.array(counted, np.int64)
        of_text = np.repeat(np.arange(len(lengths)), lengths)
        flags = (self._is_ukrainian, self._has_ideograph, self._tells_time)
        marked = (of_text[flag.view[numbers]] for flag in flags)
        said = (np.bincount(each, minlength=len(lengths)) > 0 for each in marked)
        return NumberedWords(numbers, of_text, lengths, *said)

    def numbers(self, words: Iterable[str]) -> Numbers:
        """Return the numbers of folded words."""
        numbers = np.fromiter(map(self.__getitem__, words), np.int64)
        new = self.words[len(self._scripts) :]
        self._scripts.extend([_SCRIPT_NUMBERS[script_of(word)] for word in new])
        self._claims.extend([_CLAIM_NUMBERS[CLAIMED_BY.get(word, ())] for word in new])
        is_ukrainian = [not (w.isascii() or ALWAYS_UKRAINIAN.isdisjoint(w)) for w in new]
        self._is_ukrainian.extend(is_ukrainian)
        self._has_ideograph.extend([IDEOGRAPH.search(word) is not None for word in new])
        self._tells_time.extend([tells_time(word) for word in new])
        return numbers

    def guesses(self, said: NumberedWords) -> list[Guess]:
        """Guess the languages of texts: `UNCLEAR` if none of a script wins, `ABSENT` without it.

        The language with most votes wins, if there are votes and no other has as many.
        """
        numbers, texts, count = said.numbers, said.texts, len(said.lengths)
        claims = texts * len(_CLAIMS) + self._claims.view[numbers]
        claimed = np.bincount(claims, minlength=count * len(_CLAIMS))
        votes = claimed.reshape(count, len(_CLAIMS)).astype(np.float32) @ _VOTES
        written = texts * len(SCRIPTS) + self._scripts.view[numbers]
        counts = np.bincount(written, minlength=count * len(SCRIPTS))
        is_there = counts.reshape(count, len(SCRIPTS)) > 0

        guesses = np.full((count, len(SCRIPTS)), ABSENT)
        for at in np.flatnonzero(is_there.any(0)):
            columns = [CODES.index(code) for code in LANGUAGES_OF_SCRIPT.get(SCRIPTS[at], ())]
            voted = np.full(count, columns[0] if columns else UNCLEAR)
            if len(columns) > 1:
                given = votes[:, columns]
                top = given.max(1)
                is_clear = (top > 0) & ((given == top[:, None]).sum(1) == 1)
                voted = np.where(is_clear, np.array(columns)[given.argmax(1)], UNCLEAR)
            if SCRIPTS[at] == "cyrillic":
                voted[said.are_ukrainian] = CODES.index("uk")
            guesses[:, at] = np.where(is_there[:, at], voted, ABSENT)
        return [*map(tuple, guesses.tolist())]


class RecordLanguages:
    """Counts the records of each set of languages; `sets` has the sets by their numbers."""

    def __init__(self) -> None:
        self.sets: list[dict[str, str]] = []
        self._numbers: dict[tuple[tuple[str, str], ...], int] = {}
        self._clear: dict[Guess, int] = {}
        self._counts = Counter[int]()

    def extend(self, guesses: Sequence[Guess]) -> list[int]:
        """Add records with these guesses (see `Vocabulary.guesses`); return their sets' numbers."""
        added = []
        for guess in guesses:
            number = self._clear.get(guess)
            if number is None:
                number = self._decided(guess)
            self._counts[number] += 1
            added.append(number)
        return added

    def spoken(self) -> dict[str, frozenset[str]]:
        """Return the languages of each script that records have."""
        spoken: dict[str, set[str]] = {}
        for number in self._counts:
            for script, language in self.sets[number].items():
                spoken.setdefault(script, set()).add(language)
        return {script: frozenset(languages) for script, languages in spoken.items()}

    def _decided(self, guess: Guess) -> int:
        """Return the set that is meant; unclear languages are those that prevailed so far."""
        languages = {
            script: CODES[code] if code >= 0 else UNKNOWN
            for script, code in zip(SCRIPTS, guess, strict=True)
            if code != ABSENT
        }
        for script in [each for each, language in languages.items() if language == UNKNOWN]:
            used = Counter[str]()
            for number, count in self._counts.items():
                used[self.sets[number].get(script, UNKNOWN)] += count
            del used[UNKNOWN]
            prevailing = max(((count, code) for code, count in used.items()), default=(0, UNKNOWN))
            languages[script] = prevailing[1]
        number = self._numbers.setdefault(tuple(languages.items()), len(self.sets))
        if number == len(self.sets):
            self.sets.append(languages)
        if UNCLEAR not in guess:
            self._clear[guess] = number
        return number
