"""What a notebook holds: facts, synopses and document chunks as plain values.

Records are only ever appended or erased. A repetition or an end of a fact is an entry of its own,
which `notebook` folds into the fact when it reads.
"""

from dataclasses import dataclass
from enum import IntEnum


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

    `epoch` is the conversation's when it was read (`Notebook.epoch`): after a clear, what rests on
    it only must go. `sender_id` is who said it, 0 when that is not one person.
    """

    tag: str
    seq: int
    epoch: int = 0
    sender_id: int = 0


@dataclass(frozen=True, slots=True)
class Fact:
    """A short statement in the present tense about a person or a group.

    `said_at` is when its first source was said, `ended_at` when it stopped being true (0: it still
    is); both in Unix seconds. Confidence is the number of distinct `sources`.
    """

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


@dataclass(frozen=True, slots=True)
class Synopsis:
    """What one sitting was about; a field is empty where nothing is to be said of it.

    `began_at` and `ended_at` (Unix seconds) and the sequences `first_seq` to `last_seq` span it.
    """

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


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of a document: `document` names it within its scope (same name, same document).

    `title` and `link` are its source as people are told of it; `place` says where in it ("page 3").
    `number` counts the document's chunks from 0. `added_at` is in Unix seconds.
    """

    id: int
    document: str
    number: int
    text: str
    title: str
    link: str = ""
    place: str = ""
    added_at: float = 0
    trust: Trust = Trust.UNTRUSTED


Record = Fact | Synopsis | Chunk


@dataclass(frozen=True, slots=True)
class Again:
    """An entry: a fact was said again in another message."""

    fact_id: int
    source: Source


THE_ONE_BEFORE = -1
"""Stands for the id of the record that is written right before, which is not known yet."""


@dataclass(frozen=True, slots=True)
class Ended:
    """An entry: a fact holds no more since `at`; the record `by` replaces it (0: none does).

    Written with `THE_ONE_BEFORE`, it is read with that record's id.
    """

    fact_id: int
    at: float
    by: int = 0


@dataclass(frozen=True, slots=True)
class Hidden:
    """An entry: a message is not to be recalled (or is again, when not `hidden`)."""

    seq: int
    hidden: bool = True


Entry = Record | Again | Ended | Hidden
"""What a scope's stream holds, in the order in which it was learned."""
