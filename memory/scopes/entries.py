"""The entries of a scope besides messages: facts, synopses, passages, and what amends a fact.

Entries are only appended or erased. A repetition or an end of a fact is an entry of its own, which
`ScopeMemory` folds into the fact when it reads. Each kind is a class that says how it is indexed
and what is left of it after an erasure; an entry kind without that rule cannot be defined.
"""

from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from enum import IntEnum
from functools import cache
from typing import Any, ClassVar, Self

import orjson
from pydantic import TypeAdapter


class Trust(IntEnum):
    """How far a memory may be believed: the least of its sources decides.

    `PERSON`: a person's own words. `DERIVED`: a model's summary of such. `UNTRUSTED`: forwarded or
    quoted words, documents, what tools answered.
    """

    UNTRUSTED = 0
    DERIVED = 1
    PERSON = 2


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """A message that a memory rests on: the tag of its conversation, and its sequence there.

    `epoch` is the conversation's when it was read (`ScopeMemory.epoch`): after a clear, what rests
    on it only must go. `sender_id` is who said it, 0 when that is not one person.
    """

    tag: str
    seq: int
    epoch: int = 0
    sender_id: int = 0


@dataclass(frozen=True, slots=True)
class Erased:
    """What an erasure takes at its source, so that what rests on it can say what is left.

    `seqs` are messages of the conversation `tag`. Messages before `oldest` were dropped earlier, so
    nobody knows who said them. What was learned in an epoch before `epoch` goes, too. Of the
    person `sender_id` goes what they said, and the documents they sent until `until` (Unix
    seconds). `documents` are keys of documents that go. `is_here` is false for a scope that is not
    the conversation's own.
    """

    tag: str
    seqs: Collection[int] = ()
    oldest: float = 0
    epoch: int = 0
    sender_id: int = 0
    until: float = 0
    documents: Collection[str] = ()
    is_here: bool = True

    def takes_message(self, seq: int) -> bool:
        """Say whether this message of the scope's own conversation goes."""
        return self.is_here and (seq in self.seqs or 0 < seq < self.oldest)

    def takes_any_of(self, first: int, last: int) -> bool:
        """Say whether a message from `first` to `last` goes."""
        if not self.is_here:
            return False
        return first < self.oldest or any(first <= seq <= last for seq in self.seqs)

    def takes_source(self, source: Source) -> bool:
        """Say whether a source goes; it may be in any conversation."""
        if self.sender_id and source.sender_id == self.sender_id:
            return True
        is_erased = source.seq in self.seqs or source.epoch < self.epoch
        return source.tag == self.tag and is_erased

    def takes_from(self, sender_id: int, at: float) -> bool:
        """Say whether a document goes that somebody sent at a time."""
        return self.sender_id != 0 and sender_id == self.sender_id and at <= self.until


class ScopeEntry:
    """One entry of a scope's stream. A subclass sets `KIND` and defines `without`."""

    __slots__ = ()

    KIND: ClassVar[str]
    KINDS: ClassVar[dict[str, type["ScopeEntry"]]] = {}

    def __init_subclass__(cls) -> None:
        """Register the class; raise `TypeError` if it has no rule for erasures."""
        if cls.__name__ == "Record":
            return
        for required in ("KIND", "without"):
            if required not in cls.__dict__:
                raise TypeError(f"{cls.__name__} does not define `{required}`")
        ScopeEntry.KINDS[cls.KIND] = cls

    def without(self, erased: Erased) -> Self | None:
        """Return what is left of it after an erasure, None for nothing."""
        raise NotImplementedError


class Record(ScopeEntry):
    """An entry that is a memory of its own: it has an id and is searched."""

    __slots__ = ()

    id: int

    @property
    def indexed_text(self) -> str:
        """The text that is indexed."""
        raise NotImplementedError

    @property
    def group(self) -> int:
        """Records of one group are neighbors in the index."""
        return self.id


@dataclass(frozen=True, slots=True)
class Fact(Record):
    """A short statement in the present tense about a person or a group.

    `said_at` is when its first source was said, `ended_at` when it stopped being true (0: it still
    is); both in Unix seconds. Confidence is the number of distinct `sources`.
    """

    KIND = "fact"
    id: int
    text: str
    sources: tuple[Source, ...]
    said_at: float
    trust: Trust = Trust.PERSON
    ended_at: float = 0
    replaced_by: int = 0

    @property
    def is_current(self) -> bool:
        """Whether it still holds."""
        return not self.ended_at

    @property
    def indexed_text(self) -> str:
        """The day it was said, and the text."""
        return f"{_day(self.said_at)}: {self.text}"

    def without(self, erased: Erased) -> Self | None:
        """Stay on the sources that are left; go with the last one."""
        left = tuple(source for source in self.sources if not erased.takes_source(source))
        if left == self.sources:
            return self
        return replace(self, sources=left) if left else None


@dataclass(frozen=True, slots=True)
class Synopsis(Record):
    """What one session was about; a field is empty if there is nothing to say.

    `began_at` and `ended_at` (Unix seconds) and the sequences `first_seq` to `last_seq` span it.
    """

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
    def text(self) -> str:
        """Return all that it says, one statement a line."""
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
    def indexed_text(self) -> str:
        """The day the session began, and the text."""
        return f"{_day(self.began_at)}: {self.text}"

    def without(self, erased: Erased) -> Self | None:
        """Go with any message of its session."""
        return None if erased.takes_any_of(self.first_seq, self.last_seq) else self


@dataclass(frozen=True, slots=True)
class Chunk(Record):
    """A passage of a document: `document` names it within its scope (same name, same document).

    `title` and `link` are its source as people are told of it; `place` says where in it ("page 3").
    `number` counts the document's chunks from 0. `added_at` is in Unix seconds.
    """

    KIND = "chunk"
    id: int
    document: str
    number: int
    text: str
    title: str
    link: str = ""
    place: str = ""
    added_at: float = 0
    trust: Trust = Trust.UNTRUSTED

    @property
    def indexed_text(self) -> str:
        """The document's title, and the text."""
        return f"{self.title}: {self.text}"

    @property
    def group(self) -> int:
        """The passages of one document are neighbors."""
        return hash(self.document)

    def without(self, erased: Erased) -> Self | None:
        """Go with its document."""
        return None if self.document in erased.documents else self


@dataclass(frozen=True, slots=True)
class Again(ScopeEntry):
    """A fact was said again in another message."""

    KIND = "again"
    fact_id: int
    source: Source

    def without(self, erased: Erased) -> Self | None:
        """Go with its source."""
        return None if erased.takes_source(self.source) else self


THE_ONE_BEFORE = -1
"""Stands for the record that is written right before and has no id yet."""


@dataclass(frozen=True, slots=True)
class Ended(ScopeEntry):
    """A fact holds no more since `at`; the record `by` replaces it (0: none does).

    Written with `THE_ONE_BEFORE`, it is read with that record's id.
    """

    KIND = "ended"
    fact_id: int
    at: float
    by: int = 0

    def without(self, erased: Erased) -> Self:  # noqa: ARG002 - it holds no text
        """Stay as it is; `provenance` lets a fact hold again whose successor goes."""
        return self


@dataclass(frozen=True, slots=True)
class Hidden(ScopeEntry):
    """A message is not to be recalled (or is again, if not `hidden`)."""

    KIND = "hidden"
    seq: int
    hidden: bool = True

    def without(self, erased: Erased) -> Self:  # noqa: ARG002 - it holds no text
        """Stay as it is: the sequence is never used again."""
        return self


def written(entry: ScopeEntry) -> tuple[str, bytes]:
    """Return kind and JSON as they are stored; the id of a record is the stream's own."""
    content = asdict(entry)  # type: ignore[call-overload]  # every kind is a dataclass
    content.pop("id", None)
    return entry.KIND, orjson.dumps(content)


def read(entry_id: int, kind: str, content: bytes) -> ScopeEntry | None:
    """Read a stored entry, passing over what a newer version added; None for an unknown kind."""
    if kind not in ScopeEntry.KINDS:
        return None
    fields = orjson.loads(content)
    if issubclass(ScopeEntry.KINDS[kind], Record):
        fields["id"] = entry_id
    if kind == Ended.KIND and fields.get("by") == THE_ONE_BEFORE:
        fields["by"] = entry_id - 1
    entry: ScopeEntry = _reader(kind).validate_python(fields)
    return entry


@cache
def _reader(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(ScopeEntry.KINDS[kind])


def _day(at: float) -> str:
    day = datetime.fromtimestamp(at, UTC)
    return f"{day.day} {day:%B %Y}"
