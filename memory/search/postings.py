"""The mentions of all terms in the records of a conversation, in flat arrays.

Most mentions are settled: sorted by term, and by record within a term. New ones wait in the order
in which they came, until there are enough to settle all of them at once. An object for each term
would take several times as much memory.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from memory.search.arrays import Floats, GrowingArray, Positions

Mentions = npt.NDArray[np.uint32]
"""A record and how often it has a term, at most 255 times, in one number."""
Numbers = npt.NDArray[Any]

TERM_BYTES: Final = 200
"""Bytes of a term without mentions: its text, its number, and its place in a dictionary."""
_COUNT_BITS: Final = 8
_MAX_COUNT: Final = 2**_COUNT_BITS - 1
_MENTION_BITS: Final = 32
_MAX_NEW: Final = 4_096
_NEW_SHARE: Final = 128
"""So many mentions may wait, and one in so many of the settled ones."""
_MAX_ADDED: Final = 2**18
_ADDED_SHARE: Final = 4
"""The same while records are added: settling all of a long conversation at once takes memory."""
_MIN_PART: Final = 5
"""Letters of the shorter word, if it is a part of the longer one."""


class Postings:
    """The records that mention each term, ascending, and how often; at most 16 million records."""

    def __init__(self) -> None:
        self._terms: dict[str, int] = {}
        self._starts = np.zeros(1, np.int64)
        self._mentions: Mentions = np.zeros(0, np.uint32)
        self._clear_new()

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
        ends = {
            end
            for form in long
            for letters in range(_MIN_PART, len(form))
            for end in (form[:letters], form[-letters:])
        }
        shorter = sorted(each for each in ends if each in self._terms)
        return [*shorter, *(t for t in self._terms if t.startswith(long) or t.endswith(long))]

    def extend(self, records: Numbers, terms: Numbers, counts: Numbers) -> None:
        """Add the mentions of new records: record, number of the term, and how often it has it.

        They are sorted by record, and a record has each term once.
        """
        self._new_mentions.extend(records << _COUNT_BITS | np.minimum(counts, _MAX_COUNT))
        self._new_terms.extend(terms)
        if len(self._new_terms) > _MAX_ADDED + len(self._mentions) // _ADDED_SHARE:
            self._settle()

    def of(self, terms: Sequence[str]) -> tuple[Positions, Floats]:
        """Return the records that mention any of the terms, ascending, and its largest count."""
        if len(self._new_terms) > _MAX_NEW + len(self._mentions) // _NEW_SHARE:
            self._settle()
        found, numbers = [self._mentions[:0]], [self._terms[t] for t in terms if t in self._terms]
        for number in numbers:
            if number < len(self._starts) - 1:
                found.append(self._mentions[slice(*self._starts[number : number + 2])])
            found.append(self._new_mentions.view[self._new_terms.view == number])
        mentions = np.concatenate(found)
        if len(numbers) > 1:  # a record may have several of them
            mentions.sort()
            mentions = mentions[np.diff(mentions >> _COUNT_BITS, append=-1) != 0]
        records = (mentions >> _COUNT_BITS).astype(np.intp)
        return records, (mentions & _MAX_COUNT).astype(np.float32)

    def mentions(self) -> tuple[Numbers, Numbers]:
        """Return the records and the numbers of the terms of all mentions, in no order."""
        terms = np.repeat(np.arange(len(self._starts) - 1), np.diff(self._starts))
        mentions = np.concatenate((self._mentions, self._new_mentions.view))
        return mentions >> _COUNT_BITS, np.concatenate((terms, self._new_terms.view))

    def _settle(self) -> None:
        """Sort the new mentions in among the settled ones."""
        new = self._new_terms.view
        added = np.bincount(new, minlength=len(self._terms))
        held = np.zeros_like(added)
        held[: len(self._starts) - 1] = np.diff(self._starts)
        starts = np.concatenate([[0], np.cumsum(held + added)])
        # Of each term first the settled mentions, then the new ones, in the order of their records.
        is_new = np.repeat(np.tile([False, True], len(held)), np.stack([held, added], 1).ravel())
        both = new.astype(np.int64)
        both <<= _MENTION_BITS
        both |= self._new_mentions.view
        both.sort()
        merged = np.empty(len(is_new), np.uint32)
        merged[~is_new], merged[is_new] = self._mentions, both.astype(np.uint32)
        self._mentions, self._starts = merged, starts
        self._clear_new()

    def _clear_new(self) -> None:
        self._new_terms, self._new_mentions = GrowingArray(np.int32), GrowingArray(np.uint32)
