"""The mentions of all terms in the records of a conversation, in flat arrays.

Most mentions are settled: sorted by term, and by record within a term. New ones wait in the order
in which they came, until there are enough to settle all of them at once. An object for each term
would take three times as much memory.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from memory.search.arrays import Flags, Floats, GrowingArray

Records = npt.NDArray[np.int32]
Halves = npt.NDArray[np.float16]
"""Weights in two bytes, each rounded to one part in 2,000."""
Numbers = npt.NDArray[Any]

_TERM_BYTES: Final = 200
"""Bytes of a term without mentions: its text, its number, and its place in a dictionary."""
_MENTION_BITS: Final = 32
_MAX_NEW: Final = 4_096
_NEW_SHARE: Final = 32
"""So many mentions may wait, and one in so many of the settled ones."""
_MAX_ADDED: Final = 2**18
_ADDED_SHARE: Final = 4
"""The same while records are added: settling all of a long conversation at once takes memory."""
_MIN_PART: Final = 5
"""Letters of the shorter word, if it is a part of the longer one."""


class Postings:
    """The records that mention each term, ascending, and the weight of the term in each."""

    __slots__ = (
        "_new_records",
        "_new_terms",
        "_new_weights",
        "_records",
        "_starts",
        "_terms",
        "_weights",
    )

    def __init__(self) -> None:
        self._terms: dict[str, int] = {}
        self._starts = np.zeros(1, np.int64)
        self._records: Records = np.zeros(0, np.int32)
        self._weights: Halves = np.zeros(0, np.float16)
        self._clear_new()

    @property
    def nbytes(self) -> int:
        """Bytes held, approximately."""
        new = (self._new_terms, self._new_records, self._new_weights)
        settled = self._starts.nbytes + self._records.nbytes + self._weights.nbytes
        return len(self._terms) * _TERM_BYTES + settled + sum(each.nbytes for each in new)

    def __len__(self) -> int:
        """Count terms."""
        return len(self._terms)

    def number(self, term: str) -> int:
        """Return the number of a term; a new term gets the next one."""
        return self._terms.setdefault(term, len(self._terms))

    def sharing_parts(self, forms: Sequence[str]) -> list[str]:
        """Return the terms that begin or end with one of these forms, or the other way round.

        So a part of a compound finds the compound. Shorter parts than five letters say too little.
        """
        long = tuple(each for each in forms if len(each) >= _MIN_PART and each.isalpha())
        if not long:
            return []
        ends = {end for form in long for n in range(_MIN_PART, len(form)) for end in _ends(form, n)}
        shorter = sorted(each for each in ends if each in self._terms)
        return [*shorter, *(t for t in self._terms if t.startswith(long) or t.endswith(long))]

    def extend(self, records: Numbers, terms: Numbers, weights: Numbers) -> None:
        """Add the mentions of new records: record, number of the term, and weight of each.

        They are sorted by record, and a record has each term once.
        """
        self._new_records.extend(records)
        self._new_terms.extend(terms)
        self._new_weights.extend(weights)
        if len(self._new_terms) > _MAX_ADDED + len(self._records) // _ADDED_SHARE:
            self._settle()

    def of(self, term: str) -> tuple[Records, Floats]:
        """Return the records that mention a term, ascending, and its weights in them."""
        number = self._terms.get(term)
        if number is None:
            return self._records[:0], np.zeros(0, np.float32)
        if len(self._new_terms) > _MAX_NEW + len(self._records) // _NEW_SHARE:
            self._settle()
        settled = slice(0, 0)
        if number < len(self._starts) - 1:
            settled = slice(*self._starts[number : number + 2])
        records, weights = self._records[settled], self._weights[settled]
        at = np.flatnonzero(self._new_terms.view == number)
        if len(at):
            records = np.concatenate([records, self._new_records.view[at]])
            weights = np.concatenate([weights, self._new_weights.view[at]])
        return records, weights.astype(np.float32)

    def mentions(self) -> tuple[Numbers, Numbers]:
        """Return the records and the numbers of the terms of all mentions, in no order."""
        terms = np.repeat(np.arange(len(self._starts) - 1), np.diff(self._starts))
        records = (self._records, self._new_records.view)
        return np.concatenate(records), np.concatenate((terms, self._new_terms.view))

    def _settle(self) -> None:
        """Sort the new mentions in among the settled ones."""
        new = self._new_terms.view
        added = np.bincount(new, minlength=len(self._terms))
        held = np.zeros_like(added)
        held[: len(self._starts) - 1] = np.diff(self._starts)
        starts = np.concatenate([[0], np.cumsum(held + added)])
        # Of each term first the settled mentions, then the new ones, in the order of their records.
        is_new = np.repeat(np.tile([False, True], len(held)), np.stack([held, added], 1).ravel())
        # Sorting numbers of a term and a mention is faster than a stable sort of the terms.
        order = new.astype(np.int64)
        order <<= _MENTION_BITS
        order |= np.arange(len(new))
        order.sort()
        order &= (1 << _MENTION_BITS) - 1
        # One after the other, because each needs its old and its new array at once.
        self._records = _merged(self._records, self._new_records.view[order], is_new)
        self._weights = _merged(self._weights, self._new_weights.view[order], is_new)
        self._starts = starts
        self._clear_new()

    def _clear_new(self) -> None:
        self._new_terms, self._new_records = GrowingArray(np.int32), GrowingArray(np.int32)
        self._new_weights = GrowingArray(np.float16)


def _merged(settled: Numbers, new: Numbers, is_new: Flags) -> Numbers:
    merged = np.empty(len(is_new), settled.dtype)
    merged[~is_new], merged[is_new] = settled, new
    return merged


def _ends(word: str, letters: int) -> tuple[str, str]:
    return word[:letters], word[-letters:]
