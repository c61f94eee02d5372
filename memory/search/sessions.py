"""Which records belong to one session and are therefore neighbors, and which answers which."""

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

    def append(self, session: int, *, asks: bool = False, by_person: bool = True) -> None:
        """Add a record at the end; `asks` if it is a person's question."""
        same = len(self) > 0 and int(self._numbers.view[-1]) == session
        if not same:
            self._starts.append(len(self))
        self._numbers.append(session)
        self._joined.append(same)
        self._asks.append(asks)
        self._by_person.append(by_person)

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
