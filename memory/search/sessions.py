"""Which records belong to one session and are therefore neighbors. Knows positions only."""

import numpy as np

from memory.search.growing import Floats, GrowingArray


class Sessions:
    """The session number of each record, in order; the records of a session stand together."""

    def __init__(self) -> None:
        self._numbers = GrowingArray(np.int64)
        self._joined = GrowingArray(np.float32)
        self._starts = GrowingArray(np.int64)

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._numbers.nbytes + self._joined.nbytes + self._starts.nbytes

    @property
    def joined(self) -> Floats:
        """`(records - 1,)` float32: 1 if a record and the next share a session, else 0."""
        return self._joined.view[1:]

    def append(self, session: int) -> None:
        """Add a record at the end."""
        same = len(self) > 0 and int(self._numbers.view[-1]) == session
        if not same:
            self._starts.append(len(self))
        self._numbers.append(session)
        self._joined.append(same)

    def remove(self, at: int) -> None:
        """Remove a record; the records before and after it become neighbors."""
        self._numbers.remove(at)
        self._joined.remove(at)
        numbers = self._numbers.view
        if at < len(numbers):
            self._joined.view[at] = at > 0 and numbers[at - 1] == numbers[at]
        self._starts = GrowingArray(np.int64)
        for start in np.flatnonzero(self._joined.view == 0):
            self._starts.append(int(start))

    def best(self, scores: Floats) -> Floats:
        """Return for each record the best score in its session, `(records,)` float32."""
        starts = self._starts.view
        lengths = np.empty_like(starts)
        np.subtract(starts[1:], starts[:-1], out=lengths[:-1])
        lengths[-1:] = len(self) - starts[-1:]
        return np.repeat(np.maximum.reduceat(scores, starts), lengths)
