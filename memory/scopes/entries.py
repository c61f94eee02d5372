"""The entries of a scope besides messages: facts, synopses, hidden messages.

Entries are appended or erased; only an erasure changes one (`Revision.instead`). A repetition or
an end of a fact is an entry of its own, an amendment. Each kind has to have a rule for erasures.
"""

from dataclasses import dataclass, fields, replace
from datetime import datetime, tzinfo
from functools import cache
from typing import Any, ClassVar, Self

import orjson
from pydantic import TypeAdapter

from memory.scopes.sources import Erased, Source, Trust, Wording, never_erased, register
from memory.search.message_search import IndexRecord


class ScopeEntry:
    """One entry of a scope's stream. A subclass sets `KIND` and defines `without`."""

    __slots__ = ()

    KIND: ClassVar[str]
    KINDS: ClassVar[dict[str, type["ScopeEntry"]]] = {}

    def __init_subclass__(cls) -> None:
        """Register the class; raise `TypeError` if that is not safe."""
        if cls.__name__ not in ("Record", "Amendment"):
            # The id of a record is its place in the stream; nothing stores another one.
            register(ScopeEntry.KINDS, cls, "KIND", () if issubclass(cls, Record) else ("id",))

    def without(self, erased: Erased) -> Self | None:
        """Return what is left of it after an erasure, None for nothing."""
        raise NotImplementedError


class Record(ScopeEntry):
    """An entry that is a memory of its own: it has an id and is searched."""

    __slots__ = ()

    id: int
    text: Any  # a str, which a synopsis makes of its fields
    said_at: float

    @property
    def embedded_text(self) -> str:
        """The text that is indexed and embedded."""
        return str(self.text)

    @property
    def happened_at(self) -> float:
        """When it was said or began, in Unix seconds; its date is indexed. 0: it has no date."""
        return self.said_at

    @property
    def group(self) -> int:
        """Records of one group are neighbors in the index."""
        return self.id

    def indexed(self, zone: tzinfo) -> IndexRecord:
        """Return what is indexed of it, dated in `zone`."""
        at = self.happened_at
        day = datetime.fromtimestamp(at, zone).date() if at else None
        return IndexRecord(self.embedded_text, self.group, said_on=day)


@dataclass(frozen=True, slots=True)
class Fact(Record):
    """A short statement in the present tense about a person or a group. Times are Unix seconds."""

    KIND = "fact"
    id: int
    text: str
    sources: tuple[Source, ...]  # the more distinct ones, the surer it is
    said_at: float  # when its first source was said, or when a person edited it
    trust: Trust = Trust.PERSON
    ended_at: float = 0  # when it stopped being true; 0: it still is
    replaced_by: int = 0
    replaced: tuple[Wording, ...] = ()  # former wordings, oldest first: not indexed, in no prompt
    is_pinned: bool = False
    confirmed_at: float = 0  # when it was last said again or confirmed
    asked_at: float = 0  # when the person was last asked whether it still holds, 0 for never
    changes: bool = False  # it is of a kind that changes, such as an address or a plan
    was_unpinned: bool = False  # by a person; then only a person pins it again
    # Said by the first source, "" if unknown: a general noun for what it is about, and when it
    # happens or holds, as ISO dates of a day, a month or a year.
    kind: str = ""
    from_day: str = ""
    to_day: str = ""

    @property
    def is_current(self) -> bool:
        """Whether it still holds."""
        return not self.ended_at

    def in_place_of(self, other: "Fact") -> Self:
        """Return this fact as it replaces another; what was pinned or unpinned stays so."""
        is_pinned = other.is_pinned or (self.is_pinned and not other.was_unpinned)
        return replace(self, is_pinned=is_pinned, was_unpinned=other.was_unpinned)

    def without(self, erased: Erased) -> Self | None:
        """Keep the sources that are left; without any source, a fact or a wording is erased.

        Text, time, kind and days are those of the first source. Without it, text and time become
        those of the next one, and a wording is erased.
        """
        left = erased.sources_left(self.sources)
        replaced = tuple(each for each in self.replaced if erased.sources_left(each.sources[:1]))
        if (left, replaced) == (self.sources, self.replaced):
            return self
        if not left:
            return None
        kept = replace(self, sources=left, replaced=replaced)
        first = left[0]
        if first == self.sources[0]:
            return kept
        text, said_at = first.said or self.text, first.at or self.said_at
        # Sources without words of their own said the text that the fact had until now.
        own = (replace(each, said=each.said or self.text) for each in left)
        sources = tuple(own) if text != self.text else left
        kept = replace(kept, sources=sources, text=text, said_at=said_at)
        return replace(kept, kind="", from_day="", to_day="")


@dataclass(frozen=True, slots=True)
class Synopsis(Record):
    """What one session was about; a field without a statement is empty. Times are Unix seconds."""

    KIND = "synopsis"
    id: int
    likely_request: str
    actions: str
    result: str
    behaviour: str
    emotions: str
    preferences: str
    reasoning: str
    began_at: float
    ended_at: float
    first_seq: int
    last_seq: int
    tag: str
    trust: Trust = Trust.DERIVED

    @property
    def first_statement(self) -> str:
        """The first of its statements, without the label."""
        return self.text.partition("\n")[0].partition(": ")[2]

    @property
    def text(self) -> str:
        """All its statements, one a line."""
        said = (
            ("Request", self.likely_request),
            ("Done", self.actions),
            ("Result", self.result),
            ("Behaviour", self.behaviour),
            ("Emotions", self.emotions),
            ("Preferences", self.preferences),
            ("Reasoning", self.reasoning),
        )
        return "\n".join(f"{label}: {words}" for label, words in said if words)

    @property
    def happened_at(self) -> float:
        """When the session began."""
        return self.began_at

    def without(self, erased: Erased) -> Self | None:
        """Erase the synopsis if any message of its session is erased."""
        return None if erased.takes_any_of(self.first_seq, self.last_seq) else self


THE_ONE_BEFORE = -1  # stands for the record that is written just before this one and has no id yet


@dataclass(frozen=True, slots=True)
class Hidden(ScopeEntry):
    """A message must not be found by searches; if not `hidden`, it may be found again.

    A message stays hidden until each of its reasons is taken back.
    """

    KIND = "hidden"
    seq: int
    hidden: bool = True
    because: int = 0  # the reason: a message that somebody wanted hidden; 0 for this one

    without = never_erased  # the sequence is never used again


def written(entry: ScopeEntry) -> tuple[str, bytes]:
    """Return kind and JSON as stored, without id and defaults: a default must not change later."""
    values = ((each, getattr(entry, each.name)) for each in fields(entry))  # type: ignore[arg-type]
    content = {
        each.name: value for each, value in values if each.name != "id" and value != each.default
    }
    return entry.KIND, orjson.dumps(content)


def read(entry_id: int, kind: str, content: bytes) -> ScopeEntry | None:
    """Read a stored entry; None for an unknown kind. Fields of a newer version are ignored."""
    if kind not in ScopeEntry.KINDS:
        return None
    values = orjson.loads(content)
    if issubclass(ScopeEntry.KINDS[kind], Record):
        values["id"] = entry_id
    if values.get("by") == THE_ONE_BEFORE:
        values["by"] = entry_id - 1
    entry: ScopeEntry = _reader(kind).validate_python(values)
    return entry


@cache
def _reader(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(ScopeEntry.KINDS[kind])


class Amendment(ScopeEntry):
    """An entry that amends the fact `fact_id`. A subclass also defines `amended`."""

    __slots__ = ()

    fact_id: int

    def amended(self, fact: Fact) -> Fact:
        """Return the fact as it is with this amendment."""
        raise NotImplementedError


_MAX_COMPARED = 50
"""A fact may be said every day; to compare all its sources would take seconds for each read."""


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
        """Return the fact with it, unless its newest sources have this one already."""
        if self.source in fact.sources[-_MAX_COMPARED:]:
            return fact
        sources = (*fact.sources, replace(self.source, at=self.at))
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

    # If the fact that replaced another is erased, `changes.without` restores the other.
    without = never_erased

    def amended(self, fact: Fact) -> Fact:
        """Return the fact with it."""
        return replace(fact, ended_at=self.at, replaced_by=self.by)


@dataclass(frozen=True, slots=True)
class Pinned(Amendment):
    """A fact was pinned, so the model always sees it; if not `is_pinned`, it was unpinned."""

    KIND = "pinned"
    fact_id: int
    is_pinned: bool = True

    without = never_erased

    def amended(self, fact: Fact) -> Fact:
        """Return the fact with it."""
        return replace(fact, is_pinned=self.is_pinned, was_unpinned=not self.is_pinned)


@dataclass(frozen=True, slots=True)
class Checked(Amendment):
    """A person was asked whether a fact still holds."""

    KIND = "checked"
    fact_id: int
    at: float
    is_confirmed: bool = False  # they said yes

    without = never_erased

    def amended(self, fact: Fact) -> Fact:
        """Return the fact with it."""
        if self.is_confirmed:
            return replace(fact, confirmed_at=self.at)
        return replace(fact, asked_at=self.at)
