"""What a behavior learns from and what comes of it, and the protocol of behaviors that learn.

Deciding when, asking the model and storing are the learner's business.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pydantic import BaseModel

from memory.behaviors.steps import UNTRUSTED_STEP
from memory.message import Message
from memory.scopes.records import Entry
from memory.scopes.scope_memory import ScopeMemory
from memory.store.keys import Scope


@dataclass(frozen=True, slots=True)
class Unlearned:
    """What a behavior has not learned yet: messages, oldest first, never empty.

    `quiet_s` is the time since the newest of them. `first_sitting` counts those, from the first on,
    that form a sitting which has ended (by a pause or by `/new`); 0 while the first one goes on.
    `is_shared` says that others learn now, so that to join in costs no further call.
    """

    messages: Sequence[Message]
    quiet_s: float
    first_session: int
    is_shared: bool = False

    @property
    def exchanges(self) -> int:
        """How many turns they are of."""
        return len({message.exchange for message in self.messages})

    @property
    def tokens(self) -> int:
        """What their words cost."""
        return sum(message.tokens for message in self.messages)


@dataclass(frozen=True, slots=True)
class Batch:
    """What one behavior learns from now.

    `messages` are those since its watermark, oldest first, never empty. `digests` tell by the
    sequence of an assistant's message what its tools did. `here` is the conversation's notebook,
    `facts` that of `Occasion.facts_scope` (the same one in groups).
    """

    conversation: Scope
    messages: Sequence[Message]
    digests: Mapping[int, str]
    here: ScopeMemory
    facts: ScopeMemory
    now: float

    @property
    def exchanges(self) -> int:
        """How many turns its messages are of."""
        return len({message.exchange for message in self.messages})

    @property
    def holds_untrusted(self) -> bool:
        """Whether untrusted text is in its messages, or was at hand for an answer among them."""
        digests = (self.digests.get(message.seq, "") for message in self.messages)
        return not all(message.is_first_party for message in self.messages) or any(
            UNTRUSTED_STEP in digest for digest in digests
        )


@dataclass(frozen=True, slots=True)
class Learned:
    """What is to be written: records and their amendments, and the new state (None: as it is).

    Entries go to the notebook that the behavior writes to (`LearningBehavior.is_personal`).
    `is_untrusted` says that untrusted text went into that state. `reach` is the sequence up to
    which it has learned; 0 means all of the lesson's messages.
    """

    entries: Sequence[Entry] = ()
    state: str | None = None
    is_untrusted: bool = False
    reach: int = 0


class PartRejected(Exception):  # noqa: N818 - says when
    """Raised by `learn` for an answer that would do harm; the old state and watermark stay."""


@runtime_checkable
class LearningBehavior(Protocol):
    """A behavior that learns in the background, by its part of a structured internal call."""

    @property
    def name(self) -> str:
        """Name it in fields and logs; never changes."""
        ...

    @property
    def part(self) -> type[BaseModel]:
        """Return the shape of its part of the answer."""
        ...

    @property
    def task(self) -> str:
        """Say what the model is to do for it; constant."""
        ...

    @property
    def is_personal(self) -> bool:
        """Whether it writes to `Lesson.facts` (the person's, in private), not to `Lesson.here`."""
        ...

    def is_due(self, unlearned: Unlearned) -> bool:
        """Say whether it is time."""
        ...

    def due_in(self, unlearned: Unlearned) -> float:
        """Return after how many seconds of further quiet it will be due; infinity for never."""
        ...

    def covers(self, unlearned: Unlearned) -> Sequence[Message]:
        """Return the messages, from the first on, that it wants to learn from now."""
        ...

    def material(self, batch: Batch) -> str:
        """Return what it knows already, for the model to bring up to date."""
        ...

    def learn(self, batch: Batch, answer: BaseModel) -> Learned:
        """Return what is to be written; raise `PartRejected`. Calls nobody."""
        ...
