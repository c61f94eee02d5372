"""What amends a fact: it was said again, ended, pinned, or checked with the person.

Each amendment is an entry of its own, which `ScopeMemory` folds into the fact when it reads.
"""

from dataclasses import dataclass, replace
from typing import Self

from memory.scopes.entries import Fact, ScopeEntry
from memory.scopes.sources import Erased, Source


class Amendment(ScopeEntry):
    """An entry that amends the fact `fact_id`. A subclass also defines `amended`."""

    __slots__ = ()

    fact_id: int

    def amended(self, fact: Fact) -> Fact:
        """Return the fact as it is with this amendment."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Again(Amendment):
    """A fact was said again in another message, at `at` (Unix seconds; 0 in older entries)."""

    KIND = "again"
    fact_id: int
    source: Source
    at: float = 0

    def without(self, erased: Erased) -> Self | None:
        """Erase it with its source."""
        return None if erased.takes_source(self.source) else self

    def amended(self, fact: Fact) -> Fact:
        """Return the fact with it."""
        sources = (*fact.sources, replace(self.source, at=self.at))
        if self.source in fact.sources:
            return fact
        return replace(fact, sources=sources, confirmed_at=max(self.at, fact.confirmed_at))


@dataclass(frozen=True, slots=True)
class Ended(Amendment):
    """A fact is no longer true since `at`; the record `by` replaces it (0: none does).

    Written with `THE_ONE_BEFORE`, it is read with that record's id.
    """

    KIND = "ended"
    fact_id: int
    at: float
    by: int = 0

    def without(self, erased: Erased) -> Self:  # noqa: ARG002 - it holds no text
        """Keep it. If the fact that replaced another is erased, `provenance` restores the other."""
        return self

    def amended(self, fact: Fact) -> Fact:
        """Return the fact with it."""
        return replace(fact, ended_at=self.at, replaced_by=self.by)


@dataclass(frozen=True, slots=True)
class Pinned(Amendment):
    """A fact was pinned, so the model always sees it; if not `is_pinned`, it was unpinned."""

    KIND = "pinned"
    fact_id: int
    is_pinned: bool = True

    def without(self, erased: Erased) -> Self:  # noqa: ARG002 - it holds no text
        """Keep it: it holds no text."""
        return self

    def amended(self, fact: Fact) -> Fact:
        """Return the fact with it."""
        return replace(fact, is_pinned=self.is_pinned, was_unpinned=not self.is_pinned)


@dataclass(frozen=True, slots=True)
class Checked(Amendment):
    """A person was asked at `at` whether a fact still holds; if `is_confirmed`, they said yes."""

    KIND = "checked"
    fact_id: int
    at: float
    is_confirmed: bool = False

    def without(self, erased: Erased) -> Self:  # noqa: ARG002 - it holds no text
        """Keep it: it holds no text."""
        return self

    def amended(self, fact: Fact) -> Fact:
        """Return the fact with it."""
        if self.is_confirmed:
            return replace(fact, confirmed_at=self.at)
        return replace(fact, asked_at=self.at)
