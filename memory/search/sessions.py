"""Which records belong to one session and are therefore neighbors, and which answers which."""

from collections.abc import Sequence

import numpy as np

from memory.search.arrays import Flags, Floats, GrowingArray


class Sessions:
    """Which records begin a session; the records of a session follow each other."""

    def __init__(self) -> None:
        self._newest: int | None = None
        self._joined = GrowingArray(np.float32)
        self._starts = GrowingArray(np.int64)
        self._asks = GrowingArray(np.bool_)
        self._by_person = GrowingArray(np.bool_)

    def __len__(self) -> int:
        return len(self._joined)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        arrays = (self._joined, self._starts, self._asks, self._by_person)
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
        before = ~sessions[0] if self._newest is None else self._newest
        joined = np.diff([before, *sessions]) == 0
        self._starts.extend(len(self) + np.flatnonzero(~joined))
        self._newest = sessions[-1]
        self._joined.extend(joined)
        self._asks.extend(asks)
        self._by_person.extend(by_person)

    def best(self, scores: Floats) -> Floats:
        """Return for each record the best score in its session, `(records,)` float32."""
        starts = self._starts.view
        lengths = np.diff(starts, append=len(self))
        return np.repeat(np.maximum.reduceat(scores, starts), lengths)
