"""The dense retriever: exact cosine search over the vectors of a conversation, mean removed.

All records of a conversation share something (its people, its style); their mean vector is that.
It is subtracted from the rows and from the question before the cosine is taken (Mu & Viswanath
2018, without the principal components, which did not help).

Results depend only on the vectors that are held, not on when they came or when searches ran. All
vectors must be of one model; the scope store sees to that.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from memory.search.arrays import Flags, Floats
from memory.search.int8_rows import Int8Rows, blocks, product, quantised

_STEP: Final = 1.1
"""The mean is computed again when the number of vectors has grown by this factor."""
_PAIRS: Final = 2048
"""Pairs of distant records; their cosines show what "unrelated" means with this model."""
_FLAT: Final = 1e-6
"""Scores with a smaller deviation than this differ only by rounding."""
_GROWTH: Final = 8
"""A full matrix grows by one part in so many."""


@dataclass(frozen=True, slots=True)
class DenseScores:
    """What the vector of a question found.

    `standard`: `(records,)` float32, the cosine without the mean vector, in standard deviations
    from the average record; 0 for a record without a vector. `closeness`: the best plain cosine, in
    standard deviations from the cosines of distant records. It is comparable between models.
    """

    standard: Floats
    closeness: float


class DenseIndex:
    """The directions of a conversation's vectors, by position; some records may have no vector.

    The width is `dimensions`; without it, that of the first vector.
    """

    def __init__(self, dimensions: int | None = None, centring: float = 1.0) -> None:
        self._width = dimensions
        self._centring = centring
        self._matrix: Int8Rows = np.zeros((0, dimensions or 0), np.int8)
        self._unit: Floats = np.zeros(0, np.float32)
        self._present: Flags = np.zeros(0, bool)
        self._along: Floats = np.zeros(0, np.float32)
        self._scale: Floats = np.zeros(0, np.float32)
        self._used = 0
        self._count = 0
        self._centre: Floats = np.zeros(dimensions or 0, np.float32)
        self._centred_on = 0
        self._centred_to = 0
        self._measured = 0
        self._background = (0.0, 1.0)

    def __len__(self) -> int:
        """Count all records, those without a vector included."""
        return self._used

    @property
    def vectors(self) -> int:
        """How many records have a vector."""
        return self._count

    @property
    def present(self) -> Flags:
        """`(records,)` bool: which records have a vector."""
        return self._present[: self._used]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        arrays = (self._matrix, self._unit, self._present, self._along, self._scale, self._centre)
        return sum(array.nbytes for array in arrays)

    def extend(self, vectors: Sequence[Floats | None]) -> None:
        """Add records, with or without their unit vectors.

        Raise `ValueError` and add nothing if a vector has another width than the others.
        """
        given = [
            (at, vector) for at, vector in enumerate(vectors, self._used) if vector is not None
        ]
        for _, vector in given:
            self._check(vector)
            if len(vector) != len(given[0][1]):
                raise ValueError("vectors of several widths")
        used = self._used + len(vectors)
        if used > len(self._present):
            self._resize(max(used, self._used + max(64, self._used // _GROWTH)))
        self._used = used
        for at, vector in given:
            self.put(at, vector)

    def put(self, at: int, vector: Floats) -> None:
        """Set the vector of a record; it replaces an earlier one.

        Raise `ValueError` if it has another width than the others.
        """
        self.put_packed(np.array([at]), quantised(vector)[None])

    def put_packed(self, positions: npt.NDArray[np.intp], rows: Int8Rows) -> None:
        """Set the vectors of the records at ascending positions, at least one.

        Raise `ValueError` if they have another width than the others.
        """
        self._check(rows[0])
        if self._width is None:
            self._width = rows.shape[1]
            self._centre = np.zeros(self._width, np.float32)
            self._matrix = np.zeros((len(self._present), self._width), np.int8)
        self._matrix[positions] = rows
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float32))
        self._unit[positions] = np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        self._count += len(positions) - int(np.count_nonzero(self._present[positions]))
        self._present[positions] = True
        first = int(positions[0])
        self._measured = min(self._measured, first)
        if first < self._centred_to:  # the mean was computed from the vectors before this position
            self._centred_on = 0

    def packed_from(self, first: int) -> tuple[npt.NDArray[np.intp], Int8Rows]:
        """Return the positions from `first` on that have vectors, and these, `(n, width)` int8."""
        at = first + np.flatnonzero(self._present[first : self._used])
        return at, self._matrix[at]

    def vector(self, at: int) -> Floats | None:
        """Return the vector of a record, `(dimensions,)` float32, or None."""
        return self._rows(np.array([at]))[0] if self._present[at] else None

    def scores(self, question: Floats) -> DenseScores:
        """Score all records for the unit vector of a question.

        Raise `ValueError` if it has another width than the others.
        """
        if not self._count:
            return DenseScores(np.zeros(self._used, np.float32), 0.0)
        self._check(question)
        self._recentre()
        if self._measured < self._used:
            self._measure()
        cosines = product(self._matrix[: self._used], question)
        cosines *= self._unit[: self._used]
        mean, deviation = self._background
        is_complete = self._count == self._used
        best = float((cosines if is_complete else cosines[self.present]).max())
        # (e - m)(q - m) = eq - em + m(m - q); rows without a vector have scale 0 and stay 0.
        cosines -= self._along[: self._used]
        cosines += np.float32(self._centre @ (self._centre - question))
        cosines *= self._scale[: self._used]
        standardise(cosines, self.present)
        if not is_complete:
            cosines[~self.present] = 0.0
        return DenseScores(cosines, (best - mean) / deviation)

    def _rows(self, positions: npt.NDArray[np.intp]) -> Floats:
        """Return the unit vectors at these positions, `(n, dimensions)`."""
        rows: Floats = self._matrix[positions] * self._unit[positions, None]
        return rows

    def _check(self, vector: Floats | Int8Rows) -> None:
        if self._width is not None and len(vector) != self._width:
            raise ValueError(f"a vector of {len(vector)} dimensions among those of {self._width}")

    def _recentre(self) -> None:
        """Compute the mean and the background from the first vectors, if their number has grown.

        How many are used depends on the count alone; it is at least ten of eleven.
        """
        settled = math.ceil(_STEP ** int(math.log(self._count, _STEP)))
        if settled == self._centred_on:
            return
        rows = np.flatnonzero(self.present)[:settled]
        self._centred_on, self._centred_to = settled, int(rows[-1]) + 1
        total = np.zeros_like(self._centre)
        for block in blocks(self._centred_to):  # rows without a vector are zero
            total += self._unit[block] @ self._matrix[block].astype(np.float32)
        self._centre = total * np.float32(self._centring / settled)
        self._measured = 0
        self._background = self._far_apart(rows)

    def _measure(self) -> None:
        """Store for new rows the part along the mean and the inverse length of the rest."""
        rows = slice(self._measured, self._used)
        along = product(self._matrix[rows], self._centre) * self._unit[rows]
        # |e - m|^2 of a unit vector e; a row that equals the mean has no direction of its own.
        rest = 1.0 - 2.0 * along + np.float32(self._centre @ self._centre)
        scale = np.where(rest > _FLAT, 1.0 / np.sqrt(np.maximum(rest, _FLAT)), 0.0)
        self._along[rows] = along
        self._scale[rows] = np.where(self._present[rows], scale, 0.0)
        self._measured = self._used

    def _far_apart(self, rows: npt.NDArray[np.intp]) -> tuple[float, float]:
        """Return mean and deviation of the cosines of records half a conversation apart."""
        if len(rows) < 2:
            return 0.0, 1.0
        picks = np.linspace(0, len(rows) - 1, min(len(rows), _PAIRS)).astype(np.intp)
        others = (picks + len(rows) // 2) % len(rows)
        cosines = np.einsum("ij,ij->i", self._rows(rows[picks]), self._rows(rows[others]))
        return float(cosines.mean()), max(float(cosines.std()), 1e-3)

    def _resize(self, capacity: int) -> None:
        matrix = np.zeros((capacity, self._width or 0), np.int8)
        matrix[: self._used] = self._matrix[: self._used]
        self._matrix = matrix
        for name in ("_unit", "_present", "_along", "_scale"):
            array = getattr(self, name)
            setattr(
                self, name, np.concatenate([array, np.zeros(capacity - len(array), array.dtype)])
            )


def standardise(scores: Floats, present: Flags) -> None:
    """Scale scores in place to mean 0 and deviation 1 over those present; equal ones become 0."""
    is_complete = present.all()
    count = max(len(scores) if is_complete else np.count_nonzero(present), 1)
    scores -= np.float32(np.add.reduce(scores if is_complete else scores[present]) / count)
    seen = scores if is_complete else scores[present]
    deviation = math.sqrt(seen @ seen / count)
    scores *= np.float32(1.0 / deviation if deviation > _FLAT else 0.0)
