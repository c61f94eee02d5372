"""Dense search over one conversation's vectors, exact, in numpy.

Holds rows in memory and finds the nearest; reading and writing Redis is `history`'s business.
"""

from collections.abc import Collection, Iterator

import numpy as np
import numpy.typing as npt

_FIRST_CAPACITY = 8


class VectorIndex:
    """Unit rows by message sequence, growing by appends."""

    def __init__(self) -> None:
        self._seqs = np.empty(0, np.int64)
        self._rows = np.empty((0, 0), np.float32)
        self._length = 0

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._length

    @property
    def last_seq(self) -> int:
        """The newest sequence held; 0 when empty."""
        return int(self._seqs[self._length - 1]) if self._length else 0

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._seqs.nbytes + self._rows.nbytes

    def extend(self, seqs: list[int], rows: npt.NDArray[np.float32]) -> None:
        """Append `(n, dim)` float32 unit rows of ascending sequences.

        Rows of another width come from another model: what was held, and cannot be compared, goes.
        """
        if rows.shape[1] != self._rows.shape[1]:
            self._length, self._seqs = 0, np.empty(0, np.int64)
            self._rows = np.empty((0, rows.shape[1]), np.float32)
        needed = self._length + len(seqs)
        if needed > len(self._seqs):
            capacity = max(needed, 2 * len(self._seqs), _FIRST_CAPACITY)
            grown_seqs = np.empty(capacity, np.int64)
            grown_rows = np.empty((capacity, rows.shape[1]), np.float32)
            grown_seqs[: self._length] = self._seqs[: self._length]
            grown_rows[: self._length] = self._rows[: self._length]
            self._seqs, self._rows = grown_seqs, grown_rows
        self._seqs[self._length : needed] = seqs
        self._rows[self._length : needed] = rows
        self._length = needed

    def search(
        self, query: npt.NDArray[np.float32], *, floor: float, exclude: Collection[int] = ()
    ) -> Iterator[tuple[int, float]]:
        """Yield (sequence, cosine), best first, none below `floor` or in `exclude`.

        `query` is a `(dim,)` float32 unit vector.
        """
        if not self._length or self._rows.shape[1] != len(query):
            return
        scores = self._rows[: self._length] @ query
        if exclude:
            scores[np.isin(self._seqs[: self._length], list(exclude))] = -np.inf
        for at in np.argsort(-scores, kind="stable"):
            if scores[at] < floor:
                return
            yield int(self._seqs[at]), float(scores[at])
