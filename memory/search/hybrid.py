"""What was said is found: both legs of one conversation, blended into one ranking.

    score = words x (lent + sitting x best own of the sitting) / best lent
          + standardised cosine, with `shared` of each neighbour's
          - assistant if the assistant said it - question if it ends as a question

in standard deviations of the dense leg. A question that nothing in the conversation answers to
finds nothing at all (the floor). Stores nothing and calls nobody.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from memory.search.dense import DenseIndex, DenseScores, standardise
from memory.search.growing import Growing
from memory.search.lexical import LexicalIndex, LexicalScores
from memory.search.sessions import Sessions
from memory.search.weights import DEFAULTS, Weights

Floats = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.intp]

_NO_FARTHER = -2.0
"""Where all records are alike, the background is so narrow that everything lies far outside."""

_QUESTION_MARKS = ("?", "？", "؟", "⸮", "՞")


@dataclass(frozen=True, slots=True)
class Record:
    """What is indexed of one record; date and speaker belong into `text`.

    `vector` is a unit vector, `(dimensions,)` float32, or missing until it is put.
    """

    text: str
    session: int
    by_assistant: bool = False
    vector: Floats | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """One record found: its row, its score, and what each leg had to say.

    `lent` is true when neighbours' words count more here than its own.
    """

    row: int
    score: float
    lexical: float
    dense: float
    boosted: bool


class HybridIndex:
    """Both legs over the records of one conversation, in the order in which they were said.

    A row is a record's number for good. Inside, records stand without gaps, so that a deleted one
    leaves no trace in any score.
    """

    def __init__(self, dimensions: int | None = None, weights: Weights = DEFAULTS) -> None:
        self._weights = weights
        self._sessions = Sessions()
        self._lexical = LexicalIndex(self._sessions, weights)
        self._dense = DenseIndex(dimensions, weights.centring)
        self._prior = Growing(np.float32)
        self._rows = Growing(np.int64)
        self._given = 0

    def __len__(self) -> int:
        """Count rows given out, deleted ones included."""
        return self._given

    @property
    def vectors(self) -> int:
        """How many records have a vector."""
        return self._dense.vectors

    @property
    def nbytes(self) -> int:
        """Bytes held, roughly."""
        parts = (self._lexical, self._dense, self._sessions, self._prior, self._rows)
        return sum(part.nbytes for part in parts)

    def append(self, record: Record) -> int:
        """Index one record and return its row; records of one sitting come one after another.

        Raises `ValueError` when its vector's width is not that of the others.
        """
        weights = self._weights
        self._dense.append(record.vector)
        self._lexical.append(record.text, weights.echo if record.by_assistant else 1.0)
        self._sessions.append(record.session)
        asks = record.text.rstrip().endswith(_QUESTION_MARKS)
        self._prior.append(-weights.assistant * record.by_assistant - weights.question * asks)
        self._rows.append(self._given)
        self._given += 1
        return self._given - 1

    def put_vector(self, row: int, vector: Floats) -> None:
        """Give a record its vector when it is embedded at last; a deleted one needs none.

        Raises `ValueError` when its width is not that of the others.
        """
        at = self._position(row)
        if at is not None:
            self._dense.put(at, vector)

    def delete(self, row: int) -> None:
        """Forget one record, if that has not been done before; its row is not given out again."""
        at = self._position(row)
        if at is None:
            return
        for part in (self._lexical, self._dense, self._sessions, self._prior, self._rows):
            part.remove(at)

    def search(
        self, question: str, vector: Floats | None, k: int, allowed: Flags | None = None
    ) -> list[Hit]:
        """Return up to `k` hits, best first; none when the question is not about this at all.

        A record that neither leg has anything to say for is no hit, however few others there are.
        `allowed` is `(rows,)`: rows outside are not returned, but still lend context and still say
        what the conversation is about. Raises `ValueError` for a vector of another width.
        """
        if not len(self._rows) or k < 1:
            return []
        words = self._lexical.scores(question)
        near = self._dense.scores(vector) if vector is not None and self.vectors else None
        if not self._above_floor(words, near):
            return []
        lexical = self._lexical_share(words)
        dense = np.zeros_like(lexical) if near is None else self._dense_share(near.standard)
        speaks = lexical >= self._weights.least_words
        speaks |= dense >= self._weights.least_dense
        places = self._allowed(np.flatnonzero(speaks), allowed)
        scores = lexical[places] + dense[places] + self._prior.view[places]
        best = _best(scores, k)
        places = places[best]
        columns = (
            *(self._rows.view[places], scores[best], lexical[places], dense[places]),
            words.boosted[places] > words.own[places],
        )
        return [Hit(*values) for values in zip(*(c.tolist() for c in columns), strict=True)]

    def related(self, hits: Sequence[Hit], k: int, allowed: Flags | None = None) -> list[Hit]:
        """Search again with the first hit's own vector; return up to `k` hits not among `hits`.

        They follow the direct hits and never displace one: as a bonus in the ranking the re-query
        gained nothing (and costs a second pass over the vectors, so it is asked for apart).
        """
        first = self._position(hits[0].row) if hits and k > 0 else None
        vector = None if first is None else self._dense.vector(first)
        if vector is None:
            return []
        standard = self._dense.scores(vector).standard
        places = np.flatnonzero(standard >= self._weights.outstanding)
        places = self._allowed(places, allowed)
        places = places[~np.isin(self._rows.view[places], [hit.row for hit in hits])]
        scores = standard[places] + self._prior.view[places]
        return [
            Hit(
                row=int(self._rows.view[places[at]]),
                score=float(scores[at]),
                lexical=0.0,
                dense=float(standard[places[at]]),
                boosted=False,
            )
            for at in _best(scores, k)
        ]

    def _position(self, row: int) -> int | None:
        """Return where a row stands now, or nothing when it is deleted or was never given out."""
        at = int(np.searchsorted(self._rows.view, row))
        return at if at < len(self._rows) and int(self._rows.view[at]) == row else None

    def _above_floor(self, words: LexicalScores, near: DenseScores | None) -> bool:
        """Say whether the conversation knows anything about the question."""
        if not words.asks:
            return False
        if len(self._rows) < self._weights.few:
            return words.known > 0
        said = words.known + words.covered
        if near is None:
            return said >= self._weights.floor_words
        evidence = said + self._weights.close * max(near.closeness, _NO_FARTHER)
        return evidence >= self._weights.floor or near.closeness >= self._weights.close_alone

    def _lexical_share(self, words: LexicalScores) -> Floats:
        """Return what the words add to each score, `(records,)`."""
        best = max(float(words.boosted.max(initial=0.0)), 1e-6)
        share = self._sessions.best(words.own)
        share *= np.float32(self._weights.session)
        share += words.boosted
        share *= np.float32(self._weights.words / best)
        return share

    def _dense_share(self, standard: Floats) -> Floats:
        """Return what the vectors add to each score, `(records,)`: neighbours have their part."""
        joined = self._sessions.joined
        once = joined * np.float32(self._weights.shared)
        share = standard.copy()
        onward, backward = standard[:-1] * once, standard[1:] * once
        share[1:] += onward
        share[:-1] += backward
        share[2:] += onward[:-1] * joined[1:]
        share[:-2] += backward[1:] * joined[:-1]
        standardise(share, self._dense.present)
        return share

    def _allowed(self, places: Places, allowed: Flags | None) -> Places:
        """Keep of these places the rows that are allowed."""
        return places if allowed is None else places[allowed[self._rows.view[places]]]


def _best(scores: Floats, k: int) -> Places:
    """Return where the `k` best scores stand, best first, the earlier first among equals."""
    places = np.arange(len(scores))
    if k < len(scores):
        places = np.flatnonzero(scores >= np.partition(scores, -k)[-k])
    return places[np.argsort(-scores[places], kind="stable")][:k]
