"""What a memory rests on, and what an erasure takes of that."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeVar


class Trust(IntEnum):
    """How far a memory may be trusted. The least trusted of its sources decides."""

    UNTRUSTED = 0  # forwarded or quoted text, documents, tool results
    DERIVED = 1  # a model's summary of a person's own words
    PERSON = 2  # a person's own words


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """A message that a memory rests on; a clear erases what rests only on older epochs."""

    tag: str  # of its conversation
    seq: int
    epoch: int = 0  # of the conversation when it was read (`ScopeMemory.source_epoch`)
    sender_id: int = 0  # 0 if there is not exactly one sender
    # When a fact was said again there (Unix seconds); 0 for the first source: `Fact.said_at`.
    at: float = field(default=0, compare=False)
    # The fact as it was learned from there, "" if that is the text of the fact.
    said: str = field(default="", compare=False)

    def is_of(self, tag: str, generation: int) -> bool:
        """Return whether this is a message of the conversation `tag` as it is now.

        `generation` says when it began (`ScopeMemory.generation`). After it has expired it counts
        its messages from 1 again, so an older source has the number of another message.
        """
        return self.tag == tag and (not self.epoch or self.epoch >= generation)


@dataclass(frozen=True, slots=True)
class Wording:
    """A former text of a fact, which a person has replaced. Times are Unix seconds."""

    id: int  # of the fact until then
    text: str
    sources: tuple[Source, ...]
    said_at: float
    replaced_at: float


@dataclass(frozen=True, slots=True)
class Erased:
    """What an erasure takes away; entries and fields decide with it what is left of them."""

    tag: str
    seqs: Collection[int] = ()  # messages of the conversation `tag`
    # Messages before this were dropped, so their senders are unknown: what rests on them is erased.
    oldest: float = 0
    epoch: int = 0  # what was learned in an epoch before this one goes
    sender_id: int = 0  # a person whose messages go, ...
    until: float = 0  # ... and the documents that they sent until then (Unix seconds)
    fields: Collection[str] = ()  # names of the fields of the scope that go
    generation: int = 0  # of the conversation `tag` whose messages go
    is_here: bool = True  # false for a scope that is not the conversation's own

    def takes_any_of(self, first: int, last: int) -> bool:
        """Return whether any message from `first` to `last` is erased."""
        if not self.is_here:
            return False
        return first < self.oldest or any(seq in self.seqs for seq in range(first, last + 1))

    def takes_source(self, source: Source) -> bool:
        """Return whether a source is erased; it may be in any conversation."""
        if self.sender_id and source.sender_id == self.sender_id:
            return True
        if source.tag == self.tag and source.epoch < self.epoch:
            return True
        return source.seq in self.seqs and source.is_of(self.tag, self.generation)

    def sources_left(self, sources: Iterable[Source]) -> tuple[Source, ...]:
        """Return the sources that stay."""
        return tuple(source for source in sources if not self.takes_source(source))

    def takes_from(self, sender_id: int, at: float) -> bool:
        """Return whether a document is erased that this person sent at this time."""
        return self.sender_id != 0 and sender_id == self.sender_id and at <= self.until


K = TypeVar("K")


def register(kinds: dict[str, type[K]], kind: type[K], mark: str, taken: Collection[str]) -> None:
    """Add a kind of field or entry under its `mark`; raise `TypeError` if it cannot be kept safely.

    It needs a rule for erasures and a mark of its own. An attribute with a name of `taken` would
    be stored somewhere else, or not at all; a property or a class method may take its place.
    """
    here = vars(kind)
    for required in (mark, "without"):
        if required not in here:
            raise TypeError(f"{kind.__name__} does not define `{required}`")
    for name in taken:
        is_other = name in here and not isinstance(here[name], property | classmethod)
        if is_other or name in here.get("__annotations__", ()):
            raise TypeError(f"{kind.__name__} needs another name for `{name}`, which we use")
    known = kinds.setdefault(here[mark], kind)
    if (known.__module__, known.__qualname__) != (kind.__module__, kind.__qualname__):
        raise TypeError(f"{kind.__name__} has the {mark.lower()} of {known.__name__}")
    kinds[here[mark]] = kind


def never_erased(kept: K, erased: Erased) -> K:  # noqa: ARG001 - every rule takes `erased`
    """Keep what holds only numbers and names, whatever is erased."""
    return kept
