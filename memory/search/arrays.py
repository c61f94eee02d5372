"""Array types, and a one-dimensional numpy array that grows like a list."""

from typing import Generic, TypeVar

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
