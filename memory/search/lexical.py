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
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt

from memory.search.arrays import Flags, Floats, GrowingArray, Positions
from memory.search.question import without_small_talk
from memory.search.vocabulary import NumberedWords, Numbers, RecordLanguages, Vocabulary
from memory.search.weights import DEFAULTS, Weights
from memory.search.words import TELLING, asked_terms, asked_words_of, date_words, slips_of, terms_of

Mentions = npt.NDArray[np.uint32]
"""A record and how often it has a term, at most 255 times, in one number."""
TERM_BYTES: Final = 200
"""Bytes of a term without mentions: its text, its number, and its place in a dictionary."""
_COUNT_BITS: Final = 8
_MAX_COUNT: Final = 2**_COUNT_BITS - 1
_MENTION_BITS: Final = 32
_TERM_BITS: Final = 32
_MAX_NEW: Final = 4_096
_NEW_SHARE: Final = 128  # so many mentions may wait, and one in so many of the settled ones
_MAX_ADDED: Final = 2**18
_ADDED_SHARE: Final = 4
"""The same while records are added: settling all of a long conversation at once takes memory."""
_MAX_SIMILAR: Final = 100  # each takes 20 us, and thousands of made-up words may begin alike
_MIN_LETTERS: Final = 5  # of terms and forms that may be similar


class Postings:
    """The records that mention each term, ascending, and how often; at most 16 million records.

    Most mentions are settled: sorted by term, and by record within a term. New ones wait in the
    order in which they came, until there are enough to settle all of them at once. An object for
    each term would take several times as much memory.
    """

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}  # of each term, in the order in which they came
        self._starts = np.zeros(1, np.int64)
        self._mentions: Mentions = np.zeros(0, np.uint32)
        self._clear_new()

    def similar(self, forms: Sequence[str]) -> list[str]:
        """Return the terms that an unknown word may stand for; `forms` are its possible stems.

        A term begins or ends with a form, or a form with a term: so a part of a compound finds the
        compound. If there is none, it is one of the `slips_of` a form. Forms and terms have at
        least five letters and nothing but letters.
        """
        long = tuple(each for each in forms if len(each) >= _MIN_LETTERS and each.isalpha())
        if not long:
            return []
        cuts = [(form, letters) for form in long for letters in range(_MIN_LETTERS, len(form))]
        ends = {end for form, letters in cuts for end in (form[:letters], form[-letters:])}
        # `in` first, because it takes a tenth of the time.
        holding = dict.fromkeys(each for form in long for each in self.numbers if form in each)
        longer = [each for each in holding if each.startswith(long) or each.endswith(long)]
        if parts := [*sorted(end for end in ends if end in self.numbers), *longer]:
            return parts[:_MAX_SIMILAR]
        near = {slip for form in long for slip in slips_of(form) if slip in self.numbers}
        return sorted(each for each in near if len(each) >= _MIN_LETTERS)

    def extend(self, records: Numbers, terms: Numbers, counts: Numbers) -> None:
        """Add the mentions of new records: record, number of the term, and how often it has it.

        They are sorted by record, and a record has each term once.
        """
        self._new_mentions.extend(records << _COUNT_BITS | np.minimum(counts, _MAX_COUNT))
        self._new_terms.extend(terms)
        if len(self._new_terms) > _MAX_ADDED + len(self._mentions) // _ADDED_SHARE:
            self._settle()

    def of(self, terms: Sequence[str]) -> tuple[Positions, Floats]:
        """Return the records that mention any of the terms, ascending, and its largest count."""
        if len(self._new_terms) > _MAX_NEW + len(self._mentions) // _NEW_SHARE:
            self._settle()
        found, numbers = [self._mentions[:0]], [self.numbers[t] for t in terms if t in self.numbers]
        for number in numbers:
            if number < len(self._starts) - 1:
                found.append(self._mentions[slice(*self._starts[number : number + 2])])
            found.append(self._new_mentions.view[self._new_terms.view == number])
        mentions = np.concatenate(found)
        if len(numbers) > 1:  # a record may have several of them
            mentions.sort()
            mentions = mentions[np.diff(mentions >> _COUNT_BITS, append=-1) != 0]
        records = (mentions >> _COUNT_BITS).astype(np.intp)
        return records, (mentions & _MAX_COUNT).astype(np.float32)

    def mentions(self) -> tuple[Numbers, Numbers]:
        """Return the records and the numbers of the terms of all mentions, in no order."""
        terms = np.repeat(np.arange(len(self._starts) - 1), np.diff(self._starts))
        mentions = np.concatenate((self._mentions, self._new_mentions.view))
        return mentions >> _COUNT_BITS, np.concatenate((terms, self._new_terms.view))

    def _settle(self) -> None:
        """Sort the new mentions in among the settled ones."""
        new = self._new_terms.view
        added = np.bincount(new, minlength=len(self.numbers))
        held = np.zeros_like(added)
        held[: len(self._starts) - 1] = np.diff(self._starts)
        starts = np.concatenate([[0], np.cumsum(held + added)])
        # Of each term first the settled mentions, then the new ones, in the order of their records.
        is_new = np.repeat(np.tile([False, True], len(held)), np.stack([held, added], 1).ravel())
        both = new.astype(np.int64)
        both <<= _MENTION_BITS
        both |= self._new_mentions.view
        both.sort()
        merged = np.empty(len(is_new), np.uint32)
        merged[~is_new], merged[is_new] = self._mentions, both.astype(np.uint32)
        self._mentions, self._starts = merged, starts
        self._clear_new()

    def _clear_new(self) -> None:
        self._new_terms, self._new_mentions = GrowingArray(np.int32), GrowingArray(np.uint32)


class Sessions:
    """Which records begin a session; the records of a session follow each other."""

    def __init__(self) -> None:
        self._newest: int | None = None
        self._joined = GrowingArray(np.float32)
        self._starts = GrowingArray(np.int64)
        self.asks = GrowingArray(np.bool_)  # a person asks
        self.by_person = GrowingArray(np.bool_)  # a person says it, not the assistant

    @property
    def joined(self) -> Floats:
        """`(records - 1,)` float32: 1 if a record and the next share a session, else 0."""
        return self._joined.view[1:]

    def extend(self, sessions: Sequence[int], asks: Flags, by_person: Flags) -> None:
        """Add records at the end; `asks` of those that are questions."""
        before = ~sessions[0] if self._newest is None else self._newest
        joined = np.diff([before, *sessions]) == 0
        self._starts.extend(len(self._joined) + np.flatnonzero(~joined))
        self._newest = sessions[-1]
        self._joined.extend(joined)
        self.asks.extend(asks & by_person)
        self.by_person.extend(by_person)

    def best(self, scores: Floats) -> Floats:
        """Return for each record the best score in its session, `(records,)` float32."""
        starts = self._starts.view
        lengths = np.diff(starts, append=len(scores))
        return np.repeat(np.maximum.reduceat(scores, starts), lengths)


_FEW: Final = 3
"""A word that at most three records have, and at most half of them, is rare in any conversation."""

_MAX_PARTS: Final = 8
"""Similar terms are looked for, for so many unknown words of a question at most."""

_MAX_WORDS: Final = 50_000
"""So many words are known while records are added; a text of made-up words has more."""


@dataclass(frozen=True, slots=True)
class LexicalScores:
    """What the words of a question found, except function words; scores are `(records,)`."""

    own: Floats  # by the words of the record itself
    boosted: Floats  # by its words and those of its neighbors
    known: float  # share of the question's idf mass that the conversation has, 0 to 1
    covered: float  # share that the best record covers, 0 to 1
    words: int  # of the question
    near: Flags  # records that have a word which few have, or stand beside one
    rarest: Positions  # records that have that word of these which fewest have


class LexicalIndex:
    """BM25 postings of one conversation. `sessions` must grow by the same records."""

    def __init__(self, sessions: Sessions, weights: Weights = DEFAULTS) -> None:
        self._sessions = sessions
        self._weights = weights
        self.postings = Postings()
        self.vocabulary = Vocabulary()
        self._stretch, self._shares = GrowingArray(np.float16), GrowingArray(np.float16)
        self._languages = RecordLanguages()

    def __len__(self) -> int:
        return len(self._shares)

    def extend(
        self, said: NumberedWords, weights: npt.NDArray[np.float64], days: Sequence[date | None]
    ) -> None:
        """Index records and their dates; words of a record count its weight times.

        `said` is what `vocabulary` read of them.
        """
        spoken = self._languages.extend(self.vocabulary.guesses(said))
        # The words of a date are in the languages of its record; many records share them.
        kinds = [*zip(days, spoken, said.have_ideographs.tolist(), strict=True)]
        words: dict[tuple[date | None, int, bool], tuple[str, ...]] = {}
        for day, languages, has_ideograph in dict.fromkeys(kinds):
            codes = frozenset(self._languages.sets[languages].values())
            codes |= {"zh"} if has_ideograph else set()
            words[day, languages, has_ideograph] = date_words(day, codes) if day else ()
        dates = [words[kind] for kind in kinds]
        dated = np.array([len(each) for each in dates])
        numbers = np.append(said.numbers, self.vocabulary.numbers(chain.from_iterable(dates)))
        texts = np.append(said.texts, np.repeat(np.arange(len(dates)), dated))

        texts, terms = self._terms_of(texts, spoken, numbers)
        both, counts = np.unique(texts << _TERM_BITS | terms, return_counts=True)
        texts, terms = both >> _TERM_BITS, both & (2**_TERM_BITS - 1)
        self.postings.extend(texts + len(self), terms, counts)

        k1 = self._weights.saturation
        paragraphs = (said.lengths + dated) / self._weights.paragraph_words
        self._stretch.extend(k1 * np.maximum(1.0, paragraphs))
        self._shares.extend(weights)
        if len(self.vocabulary) > _MAX_WORDS:
            self.vocabulary = Vocabulary()

    def _terms_of(
        self, texts: Numbers, spoken: Sequence[int], numbers: Numbers
    ) -> tuple[Numbers, Numbers]:
        """Return the terms of words and the texts of these; `spoken`: languages of each text."""
        held, known = self.vocabulary, self.postings.numbers
        runs, of_words = np.empty_like(numbers), np.array(spoken)[texts]
        for languages in sorted(set(spoken)):
            at = np.flatnonzero(of_words == languages)
            words = numbers[at]
            run_of = held.runs.setdefault(languages, GrowingArray(np.int64))
            run_of.extend(np.zeros(len(held) - len(run_of)))
            # Without counts, it would import `numpy.ma`.
            new, _ = np.unique(words[run_of.view[words] == 0], return_counts=True)
            terms, bounds = list[int](), list[int]()
            for number in new.tolist():
                found = terms_of((held.words[number],), self._languages.sets[languages])
                terms += [known.setdefault(term, len(known)) for term in found]
                bounds.append(len(held.terms) + len(terms))
            run_of.view[new] = np.arange(len(new)) + len(held.bounds) - 1
            held.terms.extend(terms)
            held.bounds.extend(bounds)
            runs[at] = run_of.view[words]

        bounds_of = held.bounds.view
        starts, counts = bounds_of[runs], bounds_of[runs + 1] - bounds_of[runs]
        if (counts == 1).all():  # as in most languages
            return texts, held.terms.view[starts]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.repeat(texts, counts), held.terms.view[np.repeat(starts, counts) + within]

    def scores(self, question: str) -> LexicalScores:
        """Score all records for a question; 0 without a shared word here or in a neighbor."""
        if self.vocabulary:  # it only saves time while many records are added at once
            self.vocabulary = Vocabulary()
        words = without_small_talk(asked_words_of(question))
        asked = asked_terms(words, self._languages.spoken())
        size = len(self)
        own, boosted = np.zeros((2, size), np.float32)
        near, rarest = np.zeros(size, np.bool_), np.zeros(0, np.intp)
        boost = np.float32(self._weights.neighbor_boost)
        answer_boost = np.float32(self._weights.answer_boost)
        # What a record passes on to the next one and to the one before; nothing at the ends.
        onward, backward = np.zeros((2, size + 1), np.float32)
        is_answered = self._sessions.asks.view[:-1] & self._sessions.by_person.view[1:]
        onward[: size - 1] = boost + (answer_boost - boost) * is_answered
        onward[: size - 1] *= self._sessions.joined
        backward[1:size] = boost * self._sessions.joined
        mass = known = highest = 0.0
        least = self.rare(self._weights.rare_share)
        shared = np.zeros(size, np.int32)
        for forms, (records, unweighted) in zip(asked, self._mentions(asked), strict=True):
            if not len(records) and not TELLING.isdisjoint(forms):
                continue  # what was said seldom says so: "Which books did I mention?"
            idf = self.rarity(len(records))
            mass += idf
            if len(records):
                known += idf
                weights = unweighted * np.float32(idf)
                own[records] += weights
                shared[records] += 1
                if idf > highest:
                    highest, rarest = idf, records
                after, before = weights * onward[records], weights * backward[records]
                passed = {1: after, -1: before}
                passed[2] = after * onward[records + 1]  # a neighbor passes on what it got
                passed[-2] = before * backward[records - 1]
                reached = np.zeros(size + 2, np.float32)  # the last two are beyond both ends
                reached[records] = weights
                for step, value in passed.items():
                    at = records + step
                    reached[at] = np.maximum(reached[at], value)
                boosted += reached[:size]
                if idf >= least:
                    near |= reached[:size] > 0
        have_two = shared > 1
        if self.rarity(int(have_two.sum())) >= least:
            near |= have_two
        best = float(boosted.max(initial=0.0))
        return LexicalScores(
            own=own,
            boosted=boosted,
            known=known / mass if mass else 0.0,
            covered=min(1.0, best / mass) if mass else 0.0,
            words=len(asked),
            near=near,
            rarest=rarest,
        )

    def density(self) -> Floats:
        """Return the mean weight (idf) of each record's words, `(records,)`: how much it tells."""
        records, terms = self.postings.mentions()
        mentioned = np.bincount(terms)
        idf = np.log1p((len(self) - mentioned + 0.5) / (mentioned + 0.5))
        sums = np.bincount(records, idf[terms], len(self))
        words = np.bincount(records, minlength=len(self))
        return (sums / np.maximum(1, words)).astype(np.float32)

    def rarity(self, records: int) -> float:
        """Return the weight (idf) of a word that so many records mention."""
        return math.log1p((len(self) - records + 0.5) / (records + 0.5))

    def rare(self, share: float) -> float:
        """Return the weight (idf) of a word that this share of the records mention, or three."""
        records = max(_FEW, int(len(self) * share))
        return self.rarity(min(records, len(self) // 2))

    def _mentions(self, asked: Sequence[Sequence[str]]) -> list[tuple[Positions, Floats]]:
        """Return for each word, or for similar ones if it is unknown, records and its weights."""
        found, parts_left = list[tuple[Positions, Floats]](), _MAX_PARTS
        for forms in asked:
            records, counts = self.postings.of(forms)
            if not len(records) and parts_left:
                parts_left -= 1
                records, counts = self.postings.of(self.postings.similar(forms))
            saturated = (self._weights.saturation + 1) / (counts + self._stretch.view[records])
            found.append((records, self._shares.view[records] * counts * saturated))
        return found
