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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt

from memory.search.growing import Floats
from memory.search.postings import Postings
from memory.search.sessions import Sessions
from memory.search.vocabulary import ABSENT, CODES, SCRIPTS, UNCLEAR, Numbers, Vocabulary
from memory.search.weights import DEFAULTS, Weights
from memory.search.words import UNKNOWN, asked_terms, date_words, terms_of, words_of

_MAX_STEPS: Final = 2
"""How many records away a word still counts."""
_WORD_BITS: Final = 32
"""Bits of a word's number in a key; the number of its set of languages is above them."""


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


class LexicalIndex:
    """BM25 postings of one conversation. `sessions` must grow by the same records."""

    def __init__(self, sessions: Sessions, weights: Weights = DEFAULTS) -> None:
        self._sessions = sessions
        self._weights = weights
        self._postings = Postings()
        self._languages: list[dict[str, str]] = []
        self._spoken: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._vocabulary = Vocabulary()
        self._terms: dict[int, list[int]] = {}
        self._tables: dict[tuple[tuple[str, str], ...], tuple[int, dict[str, str]]] = {}

    def __len__(self) -> int:
        """Count records."""
        return len(self._languages)

    @property
    def nbytes(self) -> int:
        """Bytes held, approximately."""
        return self._postings.nbytes + len(self) * 8

    def extend(
        self,
        words: Sequence[Sequence[str]],
        weights: npt.NDArray[np.float64],
        days: Sequence[date | None],
    ) -> None:
        """Index records and their dates; words of a record count its weight times."""
        count, vocabulary = len(words), self._vocabulary
        lengths = np.array([len(each) for each in words])
        texts = np.repeat(np.arange(count), lengths)
        numbers = _integers(map(vocabulary.__getitem__, chain.from_iterable(words)))
        guesses = vocabulary.guesses(numbers, texts, count)
        have_ideographs = vocabulary.have_ideographs(numbers, texts, count)
        tables, dates = [], []
        for guess, day, has_ideograph in zip(guesses, days, have_ideographs, strict=True):
            languages = self._decided(guess)
            codes = frozenset(languages.values())
            dates.append(date_words(day, codes | {"zh"} if has_ideograph else codes) if day else ())
            tables.append(self._note(languages))
        dated = np.array([len(each) for each in dates])
        numbers = np.append(
            numbers, _integers(map(vocabulary.__getitem__, chain.from_iterable(dates)))
        )
        texts = np.append(texts, np.repeat(np.arange(count), dated))
        texts, terms = self._terms_of(texts, (np.array(tables) << _WORD_BITS)[texts] | numbers)
        both, said = np.unique(texts * len(self._postings) + terms, return_counts=True)
        texts, terms = np.divmod(both, max(1, len(self._postings)))
        k1 = self._weights.saturation
        stretch = k1 * np.maximum(1.0, (lengths + dated) / self._weights.paragraph_words)
        gained = weights[texts] * said * (k1 + 1) / (said + stretch[texts])
        self._postings.extend(texts + (len(self) - count), terms, gained)

    def _decided(self, guess: Sequence[int]) -> dict[str, str]:
        """Return the languages of a text; unclear ones are those that prevailed so far."""
        languages = {
            script: CODES[code] if code >= 0 else UNKNOWN
            for script, code in zip(SCRIPTS, guess, strict=True)
            if code != ABSENT
        }
        if UNCLEAR in guess:
            prevailing = self._prevailing()
            for script, language in languages.items():
                languages[script] = language or prevailing.get(script, UNKNOWN)
        return languages

    def _note(self, languages: dict[str, str]) -> int:
        """Note the languages of a new record; return the number of this set of languages."""
        if not self._weights.snowball:
            languages = dict.fromkeys(languages, UNKNOWN)
        for script, language in languages.items():
            self._spoken[script][language] += 1
        table, languages = self._tables.setdefault(
            tuple(languages.items()), (len(self._tables), languages)
        )
        self._languages.append(languages)
        return table

    def _terms_of(self, texts: Numbers, keys: Numbers) -> tuple[Numbers, Numbers]:
        """Return the terms of words and the texts of these; a key is a word and its languages."""
        distinct, at = np.unique(keys, return_inverse=True)
        listed = distinct.tolist()
        if new := [key for key in listed if key not in self._terms]:
            languages = [each for _, each in self._tables.values()]
            for key in new:
                word = self._vocabulary.words[key & (1 << _WORD_BITS) - 1]
                terms = terms_of((word,), languages[key >> _WORD_BITS])
                self._terms[key] = [self._postings.number(term) for term in terms]
        found = [self._terms[key] for key in listed]
        lengths = np.array([len(each) for each in found], np.int64)
        starts, flat = np.cumsum(lengths) - lengths, _integers(chain.from_iterable(found))
        counts = lengths[at]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.repeat(texts, counts), flat[np.repeat(starts[at], counts) + within]

    def _forget_words(self) -> None:
        """Drop what only saves time while many records are added at once."""
        if self._vocabulary:
            self._vocabulary, self._terms = Vocabulary(), {}

    def remove(self, at: int) -> None:
        """Remove a record as if it had never been there; those after it move up.

        Takes time with the size of the vocabulary; deletions are rare. One trace stays: a later
        text whose language was guessed from the conversation keeps that language.
        """
        self._forget_words()
        self._postings.remove(at)
        for script, language in self._languages.pop(at).items():
            self._spoken[script][language] -= 1
            self._spoken[script] = +self._spoken[script]

    def scores(self, question: str) -> LexicalScores:
        """Score all records for a question; 0 without a shared word here or in a neighbor."""
        self._forget_words()
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


def _integers(values: Iterable[int]) -> Numbers:
    return np.fromiter(values, np.int64)
