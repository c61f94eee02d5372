"""Hybrid search over one conversation: a lexical and a dense retriever, blended into one ranking.

README.md has the formula. A question without any evidence in the conversation finds nothing (the
floor). No storage and no I/O.
"""

from array import array
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import date

import numpy as np

from memory.search.arrays import (
    NO_SCALE,
    Flags,
    Floats,
    GrowingArray,
    Positions,
    best_positions,
    int8_rows,
)
from memory.search.dense import DenseIndex, DenseScores, standardise
from memory.search.lexical import TERM_BYTES, LexicalIndex, LexicalScores, Sessions
from memory.search.message_search import Hit, IndexRecord
from memory.search.question import (
    NamedDays,
    Period,
    anchored,
    asks,
    asks_for_summary,
    asks_when,
    is_question,
    named_days,
    relative_periods,
)
from memory.search.weights import DEFAULTS, Weights
from memory.search.words import words_of

_FIRST_SAID = 3

_MIN_CLOSENESS = -2.0
"""If all records are alike, their cosines hardly vary, and any question would seem far away."""


class HybridIndex:
    """Both retrievers over the records of one conversation, in the order in which they were said.

    A row is the position of a record; row n is the entry `ids[n]`, in ascending order. No record is
    ever deleted: after an erasure a new index is built. One index serves one thread at a time.
    """

    def __init__(self, weights: Weights = DEFAULTS) -> None:
        self.ids = array("q")
        self._weights = weights
        self._sessions = Sessions()
        self._lexical = LexicalIndex(self._sessions, weights)
        self._dense = DenseIndex()
        self._prior = GrowingArray(np.float32)
        self._tells_time = GrowingArray(np.bool_)
        self._times = Times(weights)

    def __len__(self) -> int:
        return len(self._prior)

    @property
    def nbytes(self) -> int:
        """Bytes held, approximately."""
        postings = self._lexical.postings
        parts = (self, self._sessions, self._lexical, postings, self._dense, self._times)
        held = (each for part in parts for each in vars(part).values())
        arrays = sum(each.nbytes for each in held if isinstance(each, GrowingArray | np.ndarray))
        return arrays + TERM_BYTES * len(postings.numbers)

    def extend(self, records: Sequence[IndexRecord], ids: Iterable[int] | None = None) -> None:
        """Index at least one record, as yet without its vector.

        The ids are greater than those before. Without ids, the rows are the ids.
        """
        weights, vocabulary = self._weights, self._lexical.vocabulary
        texts, sessions, are_by_assistant, days = zip(*records, strict=True)
        self._dense.extend(len(records))
        said = vocabulary.read(map(words_of, texts))
        are_questions = np.array([*map(is_question, texts)])
        by_person = ~np.array(are_by_assistant)
        self.ids.extend(range(len(self), len(self) + len(records)) if ids is None else ids)
        self._lexical.extend(said, np.where(by_person, 1.0, weights.assistant_words), days)
        self._sessions.extend(sessions, are_questions, by_person)
        self._times.days.extend([day.toordinal() if day else 0 for day in days])
        self._tells_time.extend(said.tell_times)
        penalty = weights.assistant_penalty * ~by_person + weights.question_penalty * are_questions
        self._prior.extend(-penalty)

    def put_stored(self, entry_ids: Sequence[int], packed_rows: Sequence[bytes]) -> None:
        """Set the vectors of ascending entries, as they are stored, as far as these are indexed.

        Raise `ValueError` if the vectors have another width than those before.
        """
        known = np.frombuffer(self.ids, np.int64)
        at = np.searchsorted(known, entry_ids)
        is_held = known.take(at, mode="clip") == np.array(entry_ids)
        if is_held.any():
            self._dense.put_packed(at[is_held], int8_rows(packed_rows)[is_held])

    def stored_from(self, row: int) -> list[tuple[int, bytes]]:
        """Return the ids from `row` on that have vectors, and these as they are stored."""
        vectors = zip(*self._dense.packed_from(row), strict=True)
        return [(self.ids[at], NO_SCALE + vector.tobytes()) for at, vector in vectors]

    @staticmethod
    def flags(allowed: bytearray) -> Flags:
        """Return as an array which rows may be found: one byte for each, 1 or 0."""
        return np.frombuffer(allowed, np.bool_)

    def search(
        self,
        question: str,
        vector: Floats | None,
        k: int,
        allowed: Flags | None = None,
        asked_on: date | None = None,
    ) -> list[Hit]:
        """Return up to `k` hits, best first; none if the conversation holds no evidence.

        A hit needs `min_lexical` or `min_dense`, however few records there are. `vector` is
        `(dimensions,)` float32 or None. `allowed` is `(rows,)`: other rows are not returned, but
        they still boost their neighbors and count as evidence. A short text that asks nothing finds
        only records that have the rarest of its known words themselves. Weak evidence without a
        vector finds only records with a rare word of the question, or beside these. "Last summer"
        is the one before `asked_on`, nothing without it. A vector of another width is left out: the
        model has changed, and not all entries are embedded again.
        """
        if not len(self) or k < 1:
            return []
        found, named = self._lexical.scores(question), named_days(question)
        then = self._times.said_then(question, asked_on, self._lexical)
        lexical, scores = self._without_vectors(question, found, named, then)
        near = None
        if vector is not None and self._dense.vectors:
            with suppress(ValueError):
                near = self._dense.scores(vector, scores, allowed)
        asks_then = then is not None and asks(question)
        if not asks_then and not self._is_above_floor(found, near):
            return []
        is_weak = near is None and not self._is_sure(found, self._weights.floor)
        is_weak = is_weak and then is None and self._times.near(named).max(initial=0) < 1
        rows = np.arange(len(self)) if near is None else near.rows
        lexical, scores = lexical[rows], scores[rows]
        dense = np.zeros_like(lexical) if near is None else self._dense_share(near)
        scores += dense
        is_hit = (lexical >= self._weights.min_lexical) | (dense >= self._weights.min_dense)
        if then is not None:
            is_hit |= then[rows] == 1
        if allowed is not None:
            is_hit &= allowed[rows]
        asks_nothing = found.words < self._weights.min_words and not asks(question)
        if is_weak or asks_nothing:
            is_hit &= found.near[rows] if is_weak else np.isin(rows, found.rarest)
            k = min(k, self._weights.max_weak)
        is_boosted = found.boosted[rows] > found.own[rows]
        return _best(is_hit, k, rows, scores, lexical, dense, is_boosted)

    def related(
        self, hits: Sequence[Hit], k: int, allowed: Flags | None = None, text: str = ""
    ) -> list[Hit]:
        """Search again with the vector of the first hit; return up to `k` hits not in `hits`.

        Without its vector, search with the words of `text`, which is that of the first hit: records
        that share a rare word with it are related. They belong after the direct hits. As a bonus
        within the ranking, they gained nothing.
        """
        vector = self._dense.vector(hits[0].row) if hits and k > 0 else None
        if vector is not None:
            near = self._dense.scores(vector, self._prior.view, allowed)
            rows, scores = near.rows, near.standard
            is_related = scores >= self._weights.min_related
        elif hits and k > 0 and text:
            rows, scores = np.arange(len(self)), self._lexical.scores(text).own
            is_related = scores >= self._lexical.rare(self._weights.rare_share / 2)
        else:
            return []
        if allowed is not None:
            is_related &= allowed[rows]
        is_related[np.isin(rows, [hit.row for hit in hits])] = False
        parts = (scores, 0 * scores) if vector is None else (0 * scores, scores)
        return _best(is_related, k, rows, scores + self._prior.view[rows], *parts)

    def first_said(self, allowed: Flags) -> list[Hit]:
        """Return the first records that people said, for a question for the first thing."""
        rows = np.flatnonzero(allowed & self._sessions.by_person.view)
        return [Hit(row) for row in rows.tolist()[:_FIRST_SAID]]

    def statements_of_rare_words(self, question: str, k: int, allowed: Flags) -> list[Hit]:
        """Return up to `k` statements of people with the rarest words, for a question for a list.

        No word of "all museums" finds a museum by its name. So what may belong to a list follows
        the direct hits, if the words of the question are known here. With vectors it gained
        nothing: they find what belongs to it.
        """
        if not self._is_sure(self._lexical.scores(question), self._weights.floor_of_lists):
            return []
        density = self._lexical.density()
        return _best(allowed & (self._prior.view == 0), k, np.arange(len(self)), density, density)

    def _is_sure(self, found: LexicalScores, floor: float) -> bool:
        """Return whether the words of a question are evidence enough without a vector."""
        return len(self) < self._weights.min_records or found.known + found.covered >= floor

    def _is_above_floor(self, found: LexicalScores, near: DenseScores | None) -> bool:
        """Return whether the conversation holds evidence for the question."""
        if not found.words:
            return False
        if len(self) < self._weights.min_records:
            return found.known > 0
        said = found.known + found.covered
        if near is None:
            return said >= self._weights.floor_without_vectors
        evidence = said + self._weights.closeness * max(near.closeness, _MIN_CLOSENESS)
        is_close = near.closeness >= self._weights.sufficient_closeness
        return is_close or evidence >= self._weights.floor

    def _without_vectors(
        self, question: str, found: LexicalScores, named: Sequence[NamedDays], then: Floats | None
    ) -> tuple[Floats, Floats]:
        """Return what the words add to each score, and the scores without vectors, `(records,)`.

        `named` are the days that the question names, `then` is what `Times.said_then` found.
        """
        weights = self._weights
        best = max(float(found.boosted.max(initial=0.0)), 1e-6)
        lexical = self._sessions.best(found.own)
        lexical *= np.float32(weights.session)
        lexical += found.boosted
        lexical *= np.float32(weights.lexical / best)

        scores = lexical + self._prior.view
        if asks_for_summary(question):
            scores += np.float32(weights.summary_bonus) * ~self._sessions.by_person.view
        if asks_when(question):
            scores += np.float32(weights.time_bonus) * self._tells_time.view
        if then is not None:
            scores += np.float32(weights.relative_date_bonus) * then
        if meant := [each for each in named if each.year or then is None]:
            scores += np.float32(weights.date_bonus) * self._times.near(meant)
        return lexical, scores

    def _dense_share(self, near: DenseScores) -> Floats:
        """Return what the vectors add to scores, neighbors included, `(near.rows,)`."""
        standard = near.standard
        joined = self._sessions.joined[near.rows[:-1]] * (np.diff(near.rows) == 1)
        once = joined * np.float32(self._weights.dense_neighbor_boost)
        share = standard.copy()
        onward, backward = standard[:-1] * once, standard[1:] * once
        share[1:] += onward
        share[:-1] += backward
        share[2:] += onward[:-1] * joined[1:]
        share[:-2] += backward[1:] * joined[:-1]
        standardise(share, near.stand_for)
        return share


def _best(
    is_hit: Flags, k: int, rows: Positions, scores: Floats, *parts: Floats | Flags
) -> list[Hit]:
    """Return the `k` hits with the best scores, best first; columns are as in `Hit`."""
    at = np.flatnonzero(is_hit)
    at = at[best_positions(scores[at], k)]
    columns = [each[at].tolist() for each in (rows, scores, *parts)]
    return [Hit(*values) for values in zip(*columns, strict=True)]


class Times:
    """On what day each record was said, by position."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self.days = GrowingArray(np.int32)  # as ordinals, 0 for a record without a date

    def said_then(self, question: str, today: date | None, lexical: LexicalIndex) -> Floats | None:
        """Return how near each record is to days that the question names by their distance.

        `(records,)`: 1 for a record of these days, less in the days after. None if it names none
        that have records, or without `today`. "Before the move" counts from the record that
        `lexical` finds best for "the move".
        """
        if today is None:
            return None
        periods = relative_periods(question, today)
        anchor, (first, last) = anchored(question) or ("", (0, 0))
        if anchor and (found := lexical.scores(anchor)).known:
            day = int(self.days.view[int(found.own.argmax())])
            periods.append((day + first, day + last))
        near = self._nearest(periods)
        return near if near.max(initial=0) == 1 else None

    def near(self, named: Sequence[NamedDays]) -> Floats:
        """Return the nearness of each record to the nearest of these days, `(records,)`.

        It is 1 for a record of one of them.
        """
        dated = self.days.view[self.days.view > 0] if named else self.days.view[:0]
        if not len(dated):
            return np.zeros(len(self.days), np.float32)
        years = [date.fromordinal(int(day)).year for day in (dated.min(), dated.max())]
        return self._nearest([period for each in named for period in each.periods(*years)])

    def _nearest(self, periods: Sequence[Period]) -> Floats:
        """Return the nearness of each record to the nearest of these periods, `(records,)`."""
        days, near = self.days.view, np.zeros(len(self.days), np.float32)
        for first, last in periods:  # it falls to 0 in the days after a period
            fading = 1 - (days - last) / np.float32(self._weights.date_fade_days)
            np.maximum(near, np.where(days < first, 0, np.clip(fading, 0, 1)), out=near)
        return near
