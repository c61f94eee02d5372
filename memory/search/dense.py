"""The dense retriever: cosine search over the vectors of a conversation, mean removed.

All records of a conversation share something (its people, its style); their mean vector is that.
It is subtracted from the rows and from the question before the cosine is taken (Mu & Viswanath
2018, without the principal components, which did not help).

In a long conversation a first pass compares only signs: whether each component of a record, and of
the question, is above the mean. Records that may be among the best are then scored exactly.

Results depend only on the vectors that are held, not on when they came or when searches ran. All
vectors must be of one model; the scope store sees to that.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from memory.search.arrays import (
    Flags,
    Floats,
    Int8Rows,
    Positions,
    Signs,
    best_positions,
    blocks,
    packed_signs,
    product,
    with_neighbors,
)

_STEP: Final = 1.1  # the mean is computed again when the number of vectors has grown by this factor
_PAIRS: Final = 2048
"""Pairs of distant records; their cosines show what "unrelated" means with this model."""
_FLAT: Final = 1e-6  # scores with a smaller deviation than this differ only by rounding
_GROWTH: Final = 8  # a full matrix grows by an eighth
_MAX_EXACT: Final = 20_000  # up to so many records all are scored exactly
_LIKELY: Final = 300
"""Of more, these are scored exactly: this many with the best estimate by signs and words, ..."""
_NEAREST: Final = 200
"""... this many with the best estimate by signs alone (the closest one is among them), ..."""
_SAMPLED: Final = 400
"""... this many others, to estimate mean and deviation of all; and the neighbors of each."""
_GOLDEN: Final = (math.sqrt(5) - 1) / 2
_SIGNS_TELL: Final = np.float32(0.85)
"""Correlation of what the signs estimate with the exact scores (MiniLM vectors)."""


@dataclass(frozen=True, slots=True)
class DenseScores:
    """What the vector of a question found; scores are `(rows,)` float32."""

    rows: Positions  # ascending, the records that were scored: all, or some with their neighbors
    # The cosine without the mean vector, in standard deviations from the average record; 0 for a
    # record without a vector.
    standard: Floats
    stand_for: Floats  # each row counts as so many records in the mean and deviation of all
    # The best plain cosine, in standard deviations from the cosines of distant records. It is
    # comparable between models.
    closeness: float


class DenseIndex:
    """The directions of a conversation's vectors, by position; `vectors` counts them.

    Some records may have no vector. The width is that of the first vector.
    """

    def __init__(self) -> None:
        self._width: int | None = None
        self._matrix: Int8Rows = np.zeros((0, 0), np.int8)  # (records, width)
        self._unit: Floats = np.zeros(0, np.float32)  # (records,), 1 / length of the row
        self._present: Flags = np.zeros(0, bool)  # (records,), whether it has a vector
        self._along: Floats = np.zeros(0, np.float32)  # (records,), e * m
        self._scale: Floats = np.zeros(0, np.float32)  # (records,), 1 / |e - m|
        self._signs: Signs = np.zeros((0, 0), np.uint64)  # (width / 64, records)
        self._used = self.vectors = 0
        self._centre: Floats = np.zeros(0, np.float32)  # (width,), the mean vector m
        self._threshold: Int8Rows = np.zeros(0, np.int8)  # (width,), m as long as a row
        self._centred_on = 0  # this many vectors are in the mean
        self._centred_to = 0  # they are before this position
        self._measured = 0  # before this position, `_along` and `_scale` are up to date
        self._background = (0.0, 1.0)  # mean and deviation of cosines of distant records

    def extend(self, count: int) -> None:
        """Add so many records, which have no vectors yet."""
        used = self._used + count
        if used > len(self._present):
            capacity = max(used, self._used + max(64, self._used // _GROWTH))
            for name in ("_matrix", "_unit", "_present", "_along", "_scale"):
                array = getattr(self, name)  # in place: no copy; nobody keeps a view of it
                array.resize((capacity, *array.shape[1:]), refcheck=False)
        self._used = used

    def put_packed(self, positions: Positions, rows: Int8Rows) -> None:
        """Set the vectors of the records at ascending positions, at least one.

        They replace earlier ones. Raise `ValueError` if they have another width than the others.
        """
        self._check(rows[0])
        if self._width is None:
            self._width = rows.shape[1]
            self._centre = np.zeros(self._width, np.float32)
            self._matrix = np.zeros((len(self._present), self._width), np.int8)
        self._matrix[positions] = rows
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float32))
        self._unit[positions] = np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        self.vectors += len(positions) - int(np.count_nonzero(self._present[positions]))
        self._present[positions] = True
        first = int(positions[0])
        self._measured = min(self._measured, first)
        if first < self._centred_to:  # the mean was computed from the vectors before this position
            self._centred_on = 0

    def packed_from(self, first: int) -> tuple[Positions, Int8Rows]:
        """Return the positions from `first` on that have vectors, and these, `(n, width)` int8."""
        at = first + np.flatnonzero(self._present[first : self._used])
        return at, self._matrix[at]

    def vector(self, at: int) -> Floats | None:
        """Return the vector of a record, `(dimensions,)` float32, or None."""
        row: Floats = self._matrix[at] * self._unit[at]
        return row if self._present[at] else None

    def scores(self, question: Floats, favor: Floats, allowed: Flags | None = None) -> DenseScores:
        """Score the records for the unit vector of a question; at least one has a vector.

        If there are many, only those are scored that may be among the best. `favor`: `(records,)`,
        what a record scores without its vector, in deviations; a record that is not allowed counts
        as if it scored nothing. Raise `ValueError` if the width of the question is not that of the
        records.
        """
        self._check(question)
        self._recentre()
        if self._measured < self._used:
            self._measure()
        stand_for = self._present[: self._used].astype(np.float32)
        if self._used > _MAX_EXACT:
            if allowed is not None:
                favor = np.where(allowed, favor, np.float32(-np.inf))
            stand_for *= _likely(self._estimated(question, stand_for), favor)
            rows = np.flatnonzero(with_neighbors(stand_for > 0))
            cosines = product(self._matrix, question, rows)
        else:
            rows = np.arange(self._used)
            cosines = product(self._matrix[: self._used], question)
        cosines *= self._unit[rows]
        mean, deviation = self._background
        best = float(cosines.max(initial=-1.0, where=self._present[rows]))
        # (e - m)(q - m) = eq - em + m(m - q); rows without a vector have scale 0 and stay 0.
        cosines -= self._along[rows]
        cosines += np.float32(self._centre @ (self._centre - question))
        cosines *= self._scale[rows]
        standardise(cosines, stand_for[rows])
        cosines *= self._present[rows]
        return DenseScores(rows, cosines, stand_for[rows], (best - mean) / deviation)

    def _estimated(self, question: Floats, present: Floats) -> Floats:
        """Estimate the standard scores of all records by the signs of their components."""
        differ = np.zeros(self._used, np.uint16)
        asked = packed_signs((question > self._centre)[None])
        for signs, word in zip(self._signs[:, : self._used], asked, strict=True):
            differ += np.bitwise_count(signs ^ word)  # 64 components at once
        estimate = differ * np.float32(-1.0)
        standardise(estimate, present)
        estimate *= present * _SIGNS_TELL  # nothing is known without a vector
        return estimate

    def _check(self, vector: Floats | Int8Rows) -> None:
        if self._width not in (None, len(vector)):
            raise ValueError(f"a vector of {len(vector)} dimensions among those of {self._width}")

    def _recentre(self) -> None:
        """Compute the mean and the background from the first vectors, if their number has grown.

        How many are used depends on their number alone: at least ten of eleven.
        """
        count_in_mean = math.ceil(_STEP ** int(math.log(self.vectors, _STEP)))
        if count_in_mean == self._centred_on:
            return
        rows = np.flatnonzero(self._present[: self._used])[:count_in_mean]
        self._centred_on, self._centred_to = count_in_mean, int(rows[-1]) + 1
        total = np.zeros_like(self._centre)
        for block in blocks(self._centred_to):  # rows without a vector are zero
            total += self._unit[block] @ self._matrix[block].astype(np.float32)
        self._centre = total * np.float32(1 / count_in_mean)
        # The threshold is compared with rows of int8, so it has to be as long as they are.
        length = count_in_mean / max(float(self._unit[: self._centred_to].sum()), _FLAT)
        self._threshold = np.rint(self._centre * np.float32(length)).astype(np.int8)
        self._measured = 0
        self._background = (0.0, 1.0)
        if len(rows) > 1:  # records half a conversation apart have nothing to do with each other
            picks = np.linspace(0, len(rows) - 1, min(len(rows), _PAIRS)).astype(np.intp)
            far = (picks + len(rows) // 2) % len(rows)
            pairs = (self._matrix[at] * self._unit[at, None] for at in (rows[picks], rows[far]))
            cosines = np.einsum("ij,ij->i", *pairs)
            self._background = float(cosines.mean()), max(float(cosines.std()), 1e-3)

    def _measure(self) -> None:
        """Store for new rows the part along the mean and the inverse length of the rest.

        If there are many records, also store which components are above the mean.
        """
        rows = slice(self._measured, self._used)
        along = product(self._matrix[rows], self._centre) * self._unit[rows]
        # |e - m|^2 of a unit vector e; a row that equals the mean has no direction of its own.
        rest = 1.0 - 2.0 * along + np.float32(self._centre @ self._centre)
        scale = np.where(rest > _FLAT, 1.0 / np.sqrt(np.maximum(rest, _FLAT)), 0.0)
        self._along[rows] = along
        self._scale[rows] = np.where(self._present[rows], scale, 0.0)
        if self._used > _MAX_EXACT:
            first = self._measured
            if self._signs.shape[1] != len(self._present):
                self._signs = np.zeros((-(-len(self._centre) // 64), len(self._present)), np.uint64)
                first = 0
            for block in blocks(self._used - first):
                rows = slice(first + block.start, first + block.stop)
                self._signs[:, rows] = packed_signs(self._matrix[rows] > self._threshold)
        self._measured = self._used


def _likely(estimate: Floats, favor: Floats) -> Floats:
    """Return what each record counts for: 1 if it may be among the best, more in a sample, or 0."""
    likely = np.zeros(len(estimate), np.bool_)
    for scores, count in ((estimate, _NEAREST), (estimate + favor, _LIKELY)):
        likely[best_positions(scores, count)] = True
    # Multiples of the golden ratio are spread evenly, without a period that sessions may have, too.
    sample = (np.arange(_SAMPLED) * _GOLDEN % 1 * len(estimate)).astype(np.intp)
    sample = sample[~likely[sample]]
    stand_for = likely.astype(np.float32)
    stand_for[sample] = (len(estimate) - np.count_nonzero(likely)) / max(len(sample), 1)
    return stand_for


def standardise(scores: Floats, stand_for: Floats) -> None:
    """Scale scores in place to mean 0 and deviation 1; equal ones become 0."""
    count = max(float(stand_for.sum()), 1.0)
    scores -= np.float32(scores @ stand_for / count)
    deviation = math.sqrt((scores * stand_for) @ scores / count)
    scores *= np.float32(1.0 / deviation if deviation > _FLAT else 0.0)
