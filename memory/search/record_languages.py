"""The languages of the records of one conversation, one language for each script in a record.

Only a few sets of languages occur, so each set has a number.
"""

from collections import Counter
from collections.abc import Sequence

from memory.search.vocabulary import ABSENT, CODES, SCRIPTS, UNCLEAR, Guess
from memory.search.words import UNKNOWN


class RecordLanguages:
    """Counts the records of each set of languages; `sets` has the sets by their numbers.

    If not `is_stemmed`, all languages are `UNKNOWN`.
    """

    def __init__(self, *, is_stemmed: bool) -> None:
        self.sets: list[dict[str, str]] = []
        self._is_stemmed = is_stemmed
        self._numbers: dict[tuple[tuple[str, str], ...], int] = {}
        self._clear: dict[Guess, int] = {}
        self._counts = Counter[int]()

    def __len__(self) -> int:
        """Count records."""
        return self._counts.total()

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
        for script, language in languages.items():
            languages[script] = language or self._prevailing(script)
        if not self._is_stemmed:
            languages = dict.fromkeys(languages, UNKNOWN)
        number = self._numbers.setdefault(tuple(languages.items()), len(self.sets))
        if number == len(self.sets):
            self.sets.append(languages)
        if UNCLEAR not in guess:
            self._clear[guess] = number
        return number

    def _prevailing(self, script: str) -> str:
        """Return the most frequent known language of a script so far."""
        counts = Counter[str]()
        for number, count in self._counts.items():
            if language := self.sets[number].get(script, UNKNOWN):
                counts[language] += count
        return max(((count, code) for code, count in counts.items()), default=(0, UNKNOWN))[1]
