"""The lexical leg: BM25 over a conversation's records, whose words neighbours lend each other.

Departures from the textbook (Robertson & Zaragoza 2009), each measured:

- Length is normalised against a fixed paragraph, not against the mean: up to it every mention
  counts in full, beyond it a word counts less the longer the record. What one record contributes
  therefore never changes, and is stored once when it is appended.
- A word said nearby in the same sitting counts as if said here at a share per step: "and then?"
  belongs to what it follows. The best of the lenders counts, not their sum.

Not safe for use by two threads at once. Vectors and blending are none of its business.
"""

import math
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from memory.search.sessions import Sessions
from memory.search.weights import DEFAULTS, Weights
from memory.search.words import UNKNOWN, asked_terms, languages_of, terms_of, words_of

Floats = npt.NDArray[np.float32]

REACH: Final = 2
"""How many records away a word is still lent."""
_TERM_BYTES: Final = 400
"""What a term costs before its first mention: its text, two arrays, their owner."""
_MENTION_BYTES: Final = 9
"""A record's number and a weight, in arrays that grow by an eighth."""


@dataclass(frozen=True, slots=True)
class LexicalScores:
    """What a question's words found; arrays are `(records,)` float32.

    `own` counts the words a record says itself, `lent` these and its neighbours'. `known` is the
    share of the question's idf mass that the conversation ever used, `covered` the share that the
    best record covers, both 0 to 1; `asks` is false for a question of function words alone.
    """

    own: Floats
    boosted: Floats
    known: float
    covered: float
    asks: bool


class _Posting:
    """The records that say one term, ascending, and the term's saturated weight in each."""

    __slots__ = ("records", "weights")

    def __init__(self) -> None:
        self.records = array("i")
        self.weights = array("f")

    def remove(self, at: int) -> bool:
        """Take a record out, moving those behind it up; say whether it was here."""
        place = bisect_left(self.records, at)
        found = place < len(self.records) and self.records[place] == at
        if found:
            del self.records[place], self.weights[place]
        np.frombuffer(self.records, np.int32)[place:] -= 1
        return found


class LexicalIndex:
    """BM25 postings of one conversation, grown record by record; `sittings` is grown beside it."""

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
        """Bytes held, roughly."""
        return len(self._postings) * _TERM_BYTES + self._mentions * _MENTION_BYTES + len(self) * 240

    def append(self, text: str, weight: float = 1.0) -> None:
        """Index one record; `weight` scales what its words count for, 1 for a person's own."""
        words = words_of(text)
        languages = languages_of(words, self._prevailing())
        if not self._weights.snowball:
            languages = dict.fromkeys(languages, UNKNOWN)
        for script, language in languages.items():
            self._spoken[script][language] += 1
        k1 = self._weights.saturation
        stretch = k1 * max(1.0, len(words) / self._weights.paragraph)
        counts, record = Counter(terms_of(words, languages)), len(self)
        for term, count in counts.items():
            posting = self._postings[term]
            posting.records.append(record)
            posting.weights.append(weight * count * (k1 + 1) / (count + stretch))
        self._mentions += len(counts)
        self._languages.append(languages)

    def remove(self, at: int) -> None:
        """Take a record out as if it had never been said; those behind it move up.

        Walks the vocabulary, which a deletion is rare enough for. One trace stays: a later text too
        short to tell its language keeps the one that was usual when it came.
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
        """Score all records for a question; zero where none of its words is said or lent."""
        heard = {script: frozenset(counts) for script, counts in self._spoken.items()}
        asked = asked_terms(
            words_of(question), heard, function_words=self._weights.keep_function_words
        )
        own, boosted, said = (np.zeros(len(self), np.float32) for _ in range(3))
        lending = self._sessions.joined * np.float32(self._weights.boosted)
        onward, backward = np.empty_like(lending), np.empty_like(lending)
        mass = known = 0.0
        for forms in asked:
            count = self._say(forms, said)
            idf = math.log1p((len(self) - count + 0.5) / (count + 0.5))
            mass += idf
            if count:
                known += idf
                said *= np.float32(idf)
                own += said
                for _ in range(REACH):  # what was lent is lent on
                    np.multiply(said[:-1], lending, out=onward)
                    np.multiply(said[1:], lending, out=backward)
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
            asks=bool(asked),
        )

    def _say(self, forms: Sequence[str], said: Floats) -> int:
        """Put a word's weight into the records that say it in any form; return how many do."""
        postings = [self._postings[form] for form in forms if form in self._postings]
        if len(postings) == 1:
            said[np.array(postings[0].records)] = postings[0].weights
            return len(postings[0].records)
        for posting in postings:
            records = np.array(posting.records)
            said[records] = np.maximum(said[records], posting.weights)
        return int(np.count_nonzero(said)) if postings else 0

    def _prevailing(self) -> dict[str, str]:
        """Name the language most spoken so far in each script, `UNKNOWN` apart."""
        prevailing: dict[str, str] = {}
        for script, counts in self._spoken.items():
            named = [(count, language) for language, count in counts.items() if language != UNKNOWN]
            if named:
                prevailing[script] = max(named)[1]
        return prevailing
