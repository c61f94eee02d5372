"""Which records belong to one session and are therefore neighbors, and which answers which."""

from collections.abc import Sequence

import numpy as np

from memory.search.growing import Flags, Floats, GrowingArray


class Sessions:
    """The session number of each record, in order; the records of a session stand together."""

    def __init__(self) -> None:
        self._numbers = GrowingArray(np.int64)
        self._joined = GrowingArray(np.float32)
        self._starts = GrowingArray(np.int64)
        self._asks = GrowingArray(np.bool_)
        self._by_person = GrowingArray(np.bool_)

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        arrays = (self._numbers, self._joined, self._starts, self._asks, self._by_person)
        return sum(array.nbytes for array in arrays)

    @property
    def joined(self) -> Floats:
        """`(records - 1,)` float32: 1 if a record and the next share a session, else 0."""
        return self._joined.view[1:]

    @property
    def answered(self) -> Flags:
        """`(records - 1,)` bool: a person asks, and a person says the next record."""
        return self._asks.view[:-1] & self._by_person.view[1:]

    def extend(self, sessions: Sequence[int], asks: Flags, by_person: Flags) -> None:
        """Add records at the end; `asks` of those that are a person's question."""
        before = self._numbers.view[-1:] if len(self) else np.array([~sessions[0]])
        joined = np.diff(np.concatenate([before, sessions])) == 0
        self._starts.extend(len(self) + np.flatnonzero(~joined))
        self._numbers.extend(sessions)
        self._joined.extend(joined)
        self._asks.extend(asks)
        self._by_person.extend(by_person)

    def remove(self, at: int) -> None:
        """Remove a record; the records before and after it become neighbors."""
        for array in (self._numbers, self._joined, self._asks, self._by_person):
            array.remove(at)
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
