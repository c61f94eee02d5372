"""Array types, a numpy array that grows like a list, and vectors in one byte for each component.

A product of such vectors converts a block of rows at a time, which then still is in the processor's
cache. So it takes no longer than with float32 rows, which are four times as large.
"""

from collections.abc import Iterator, Sequence
from typing import Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.intp]

Scalar = TypeVar("Scalar", bound=np.generic)


class GrowingArray(Generic[Scalar]):
    """Values of one dtype in a buffer that doubles when it is full."""

    __slots__ = ("_buffer", "_used")

    def __init__(self, dtype: type[Scalar]) -> None:
        self._buffer: npt.NDArray[Scalar] = np.empty(4, dtype)
        self._used = 0

    def __len__(self) -> int:
        return self._used

    @property
    def view(self) -> npt.NDArray[Scalar]:
        """The values, `(len(self),)`, without a copy; valid until the next change."""
        return self._buffer[: self._used]

    @property
    def nbytes(self) -> int:
        """Bytes of the buffer."""
        return self._buffer.nbytes

    def extend(self, values: npt.ArrayLike) -> None:
        """Add values at the end, `(n,)`."""
        added = np.asarray(values, self._buffer.dtype)
        used = self._used + len(added)
        if used > len(self._buffer):
            longer = np.empty(max(used, 2 * len(self._buffer)), self._buffer.dtype)
            longer[: self._used] = self.view
            self._buffer = longer
        self._buffer[self._used : used] = added
        self._used = used


def with_neighbors(flags: Flags) -> Flags:
    """Return `flags` with the two positions before and after each true one, `(len(flags),)`."""
    wide = flags.copy()
    for step in (1, 2):
        wide[step:] |= flags[:-step]
        wide[:-step] |= flags[step:]
    return wide


def best_positions(scores: Floats, k: int) -> Positions:
    """Return the positions of the `k` best scores, best first; of equal ones the earlier first."""
    positions = np.arange(len(scores))
    if k < len(scores):
        positions = np.flatnonzero(scores >= np.partition(scores, -k)[-k])
    return positions[np.argsort(-scores[positions], kind="stable")][:k]


Int8Rows = npt.NDArray[np.int8]
"""`(n, dimensions)` int8: vectors by their directions; their lengths do not matter."""
Signs = npt.NDArray[np.uint64]

NO_SCALE: Final = bytes(4)
"""Stored vectors begin with a float32 scale, which a cosine does not need."""
_BLOCK_ROWS: Final = 512
"""Rows that a product converts at once; with 512 dimensions they take 1 MB as float32."""


def int8_rows(packed_rows: Sequence[bytes]) -> Int8Rows:
    """Return stored vectors, all of one length, as `(n, dim)` int8."""
    raw = np.frombuffer(b"".join(packed_rows), np.int8)
    return raw.reshape(len(packed_rows), -1)[:, len(NO_SCALE) :]


def product(matrix: Int8Rows, question: Floats, rows: Positions | None = None) -> Floats:
    """Return `matrix @ question`, of some rows or of all, `(rows,)`."""
    product = np.empty(len(matrix if rows is None else rows), np.float32)
    converted = np.empty((min(len(product), _BLOCK_ROWS), matrix.shape[1]), np.float32)
    for block in blocks(len(product)):
        wide = converted[: block.stop - block.start]
        np.copyto(wide, matrix[block if rows is None else rows[block]])
        np.dot(wide, question, out=product[block])
    return product


def packed_signs(is_above: Flags) -> Signs:
    """Return `(n, dimensions)` flags as bits, 64 dimensions in a number, `(numbers, n)`."""
    count, dimensions = is_above.shape
    padded = np.zeros((count, -(-dimensions // 64) * 64), np.bool_)
    padded[:, :dimensions] = is_above
    return np.packbits(padded, axis=1).view(np.uint64).T


def blocks(count: int) -> Iterator[slice]:
    """Yield `range(count)` in slices of as many rows as are converted at once."""
    for start in range(0, count, _BLOCK_ROWS):
        yield slice(start, min(start + _BLOCK_ROWS, count))
