"""The lexical retriever: BM25 over the records of a conversation, with a boost by neighbors.

It differs from the textbook (Robertson & Zaragoza 2009) in two points, each measured:

- Length is normalised against a fixed paragraph, not against the mean length. Up to a paragraph a
  mention counts in full; in longer records it counts less. So the contribution of a record never
  changes, and it is stored once when the record is appended.
- A word of a neighbor in the same session counts for a record too, at a share per step, because
  "and then?" belongs to what it follows. The best neighbor counts, not the sum.

One index serves one thread at a time.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain
from typing import Final

import numpy as np

from memory.search.growing import Floats
from memory.search.postings import Postings
from memory.search.sessions import Sessions
from memory.search.weights import DEFAULTS, Weights
from memory.search.words import (
    UNKNOWN,
    asked_terms,
    date_words,
    languages_of,
    terms_of,
    words_of,
)

_MAX_STEPS: Final = 2
"""How many records away a word still counts."""


@dataclass(frozen=True, slots=True)
class LexicalScores:
    """What the words of a question found; arrays are `(records,)` float32.

    `own`: by the words of the record itself. `boosted`: by its words and those of its neighbors.
    `known`: share of the question's idf mass that occurs anywhere in the conversation, 0 to 1.
    `covered`: share that the best record covers, 0 to 1. `has_content`: the question has a word
    that is not a function word.
    """

    own: Floats
    boosted: Floats
    known: float
    covered: float
    has_content: bool


class _TermsOfWords(dict[str, Sequence[str]]):
    """The terms of each word in texts of these languages, computed at the first use."""

    def __init__(self, languages: dict[str, str]) -> None:
        super().__init__()
        self.languages = languages

    def __missing__(self, word: str) -> Sequence[str]:
        terms = self[word] = tuple(terms_of((word,), self.languages))
        return terms


class LexicalIndex:
    """BM25 postings of one conversation. `sessions` must grow by the same records."""

    def __init__(self, sessions: Sessions, weights: Weights = DEFAULTS) -> None:
        self._sessions = sessions
        self._weights = weights
        self._postings = Postings()
        self._languages: list[dict[str, str]] = []
        self._spoken: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._words: dict[tuple[tuple[str, str], ...], _TermsOfWords] = {}

    def __len__(self) -> int:
        """Count records."""
        return len(self._languages)

    @property
    def nbytes(self) -> int:
        """Bytes held, approximately."""
        return self._postings.nbytes + len(self) * 8

    def append(
        self, words: Sequence[str], weight: float = 1.0, said_on: date | None = None
    ) -> None:
        """Index one record and its date; its words count `weight` times, 1 for a person's."""
        languages = languages_of(words, self._prevailing())
        if said_on is not None:
            words = [*words, *date_words(said_on, words, languages)]
        if not self._weights.snowball:
            languages = dict.fromkeys(languages, UNKNOWN)
        for script, language in languages.items():
            self._spoken[script][language] += 1
        k1 = self._weights.saturation
        stretch = k1 * max(1.0, len(words) / self._weights.paragraph_words)
        table = self._words.setdefault(tuple(languages.items()), _TermsOfWords(languages))
        counts = Counter(chain.from_iterable(map(table.__getitem__, words)))
        weights = [weight * n * (k1 + 1) / (n + stretch) for n in counts.values()]
        self._postings.append(len(self), counts, weights)
        self._languages.append(table.languages)

    def remove(self, at: int) -> None:
        """Remove a record as if it had never been there; those after it move up.

        Takes time with the size of the vocabulary; deletions are rare. One trace stays: a later
        text whose language was guessed from the conversation keeps that language.
        """
        self._postings.remove(at)
        for script, language in self._languages.pop(at).items():
            self._spoken[script][language] -= 1
            self._spoken[script] = +self._spoken[script]

    def scores(self, question: str) -> LexicalScores:
        """Score all records for a question; 0 without a shared word here or in a neighbor."""
        for table in self._words.values():
            table.clear()  # they only save time while many records are added at once
        heard = {script: frozenset(counts) for script, counts in self._spoken.items()}
        asked = asked_terms(
            words_of(question), heard, function_words=self._weights.keep_function_words
        )
        own, boosted, said = (np.zeros(len(self), np.float32) for _ in range(3))
        joined = self._sessions.joined
        boost = joined * np.float32(self._weights.neighbor_boost)
        lent = np.where(self._sessions.answered, joined * self._weights.answer_boost, boost)
        onward, backward = np.empty_like(boost), np.empty_like(boost)
        mass = known = 0.0
        for forms in asked:
            count = self._fill(forms, said)
            idf = math.log1p((len(self) - count + 0.5) / (count + 0.5))
            mass += idf
            if count:
                known += idf
                said *= np.float32(idf)
                own += said
                for _ in range(_MAX_STEPS):  # a neighbor passes on what it got
                    np.multiply(said[:-1], lent, out=onward)
                    np.multiply(said[1:], boost, out=backward)
                    np.maximum(said[1:], onward, out=said[1:])
                    np.maximum(said[:-1], backward, out=said[:-1])
                boosted += said
                said.fill(0.0)
        best = float(boosted.max(initial=0.0))
        return LexicalScores(
            own=own,
            boosted=boosted,
            known=known / mass if mass else 0.0,
            covered=min(1.0, best / mass) if mass else 0.0,
            has_content=bool(asked),
        )

    def _fill(self, forms: Sequence[str], said: Floats) -> int:
        """Put the weight of a word into the records that contain it in any form; count these."""
        for form in forms:
            records, weights = self._postings.of(form)
            said[records] = np.maximum(said[records], weights)
        if len(forms) == 1:
            return len(records)
        return int(np.count_nonzero(said))

    def _prevailing(self) -> dict[str, str]:
        """Return the most frequent known language of each script so far."""
        prevailing: dict[str, str] = {}
        for script, counts in self._spoken.items():
            named = [(count, language) for language, count in counts.items() if language != UNKNOWN]
            if named:
                prevailing[script] = max(named)[1]
        return prevailing
