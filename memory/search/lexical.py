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
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

import numpy as np

from memory.search.growing import Floats
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
_TERM_BYTES: Final = 400
"""Bytes of a term without mentions: its text, two arrays, and the object that holds them."""
_MENTION_BYTES: Final = 9
"""Bytes of a mention: the number of the record and a weight, in arrays that grow by an eighth."""


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


class _Posting:
    """The records that contain a term, ascending, and its saturated weight in each."""

    __slots__ = ("records", "weights")

    def __init__(self) -> None:
        self.records = array("i")
        self.weights = array("f")

    def remove(self, at: int) -> bool:
        """Remove a record and renumber those after it; return whether the term occurred in it."""
        place = bisect_left(self.records, at)
        found = place < len(self.records) and self.records[place] == at
        if found:
            del self.records[place], self.weights[place]
        np.frombuffer(self.records, np.int32)[place:] -= 1
        return found


class LexicalIndex:
    """BM25 postings of one conversation. `sessions` must grow by the same records."""

    def __init__(self, sessions: Sessions, weights: Weights = DEFAULTS) -> None:
        self._sessions = sessions
        self._weights = weights
        self._postings: defaultdict[str, _Posting] = defaultdict(_Posting)
        self._languages: list[dict[str, str]] = []
        self._spoken: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._mentions = 0

    def __len__(self) -> int:
        """Count records."""
        return len(self._languages)

    @property
    def nbytes(self) -> int:
        """Bytes held, approximately."""
        return len(self._postings) * _TERM_BYTES + self._mentions * _MENTION_BYTES + len(self) * 240

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
        counts, record = Counter(terms_of(words, languages)), len(self)
        for term, count in counts.items():
            posting = self._postings[term]
            posting.records.append(record)
            posting.weights.append(weight * count * (k1 + 1) / (count + stretch))
        self._mentions += len(counts)
        self._languages.append(languages)

    def remove(self, at: int) -> None:
        """Remove a record as if it had never been there; those after it move up.

        Takes time with the size of the vocabulary; deletions are rare. One trace stays: a later
        text whose language was guessed from the conversation keeps that language.
        """
        found = [term for term, posting in self._postings.items() if posting.remove(at)]
        for term in found:
            if not len(self._postings[term].records):
                del self._postings[term]
        self._mentions -= len(found)
        for script, language in self._languages.pop(at).items():
            self._spoken[script][language] -= 1
            self._spoken[script] = +self._spoken[script]

    def scores(self, question: str) -> LexicalScores:
        """Score all records for a question; 0 without a shared word here or in a neighbor."""
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
        postings = [self._postings[form] for form in forms if form in self._postings]
        if len(postings) == 1:
            said[np.array(postings[0].records)] = postings[0].weights
            return len(postings[0].records)
        for posting in postings:
            records = np.array(posting.records)
            said[records] = np.maximum(said[records], posting.weights)
        return int(np.count_nonzero(said)) if postings else 0

    def _prevailing(self) -> dict[str, str]:
        """Return the most frequent known language of each script so far."""
        prevailing: dict[str, str] = {}
        for script, counts in self._spoken.items():
            named = [(count, language) for language, count in counts.items() if language != UNKNOWN]
            if named:
                prevailing[script] = max(named)[1]
        return prevailing
