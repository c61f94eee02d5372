"""`LearningBehavior`: a behavior that learns from the conversation after each reply.

It says when it is due, what it reads and what its answer means. Asking the model and storing what
was learned is the job of `memory.learning`.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from pydantic import BaseModel

from memory.behaviors.behavior import AIContextBehavior
from memory.behaviors.steps import UNTRUSTED_STEP
from memory.message import Message
from memory.scopes.entries import ScopeEntry
from memory.scopes.scope_memory import ScopeMemory
from memory.store.keys import Scope


@dataclass(frozen=True, slots=True)
class Unlearned:
    """The messages that a behavior has not learned from yet, oldest first, never empty."""

    messages: Sequence[Message]
    quiet_s: float  # seconds since the newest of them
    first_session: int  # how many belong to a first session that has ended; 0 while it goes on
    is_shared: bool = False  # another behavior learns now, so joining costs no further model call
    is_asked_for: bool = False  # somebody looks at what was learned

    @property
    def tokens(self) -> int:
        """Tokens of all messages together."""
        return sum(message.tokens for message in self.messages)


@dataclass(frozen=True, slots=True)
class Batch:
    """What one behavior learns from in one model call."""

    conversation: Scope
    messages: Sequence[Message]  # those after its watermark, oldest first, never empty
    digests: Mapping[int, str]  # what the tools of a turn did, by the sequence of its answer
    here: ScopeMemory  # the conversation's
    facts: ScopeMemory  # that of `Scope.facts_scope`, in groups the same object as `here`
    now: float
    refusal: str = ""  # why the last answer was rejected, as the model is told
    state: str = ""  # what the behavior returned last as its state; the running state is in `here`

    @property
    def holds_untrusted(self) -> bool:
        """Whether a message holds untrusted text, or an answer was written from such text."""
        digests = (self.digests.get(message.seq, "") for message in self.messages)
        return not all(message.is_first_party for message in self.messages) or any(
            UNTRUSTED_STEP in digest for digest in digests
        )


PROMPTS = tomllib.loads(files("memory.behaviors").joinpath("prompts.toml").read_text("utf-8"))
"""What models are told and asked for, by the names of behaviors."""

MAX_STATE_BYTES = 4_096  # bytes of the state of one behavior


@dataclass(frozen=True, slots=True)
class Learned:
    """What is to be written, in the scope memory that `LearningBehavior.is_personal` names."""

    entries: Sequence[ScopeEntry] = ()  # records, and changes of records
    state: str | None = None  # at most `MAX_STATE_BYTES`; None: unchanged, "" removes it
    is_untrusted: bool = False  # untrusted text went into the state


class PartRejected(Exception):
    """Raised by `learn` for an answer that would do harm. State and watermark stay as they are.

    `tell` is stored and says to the model what to do better when it is asked again, in at most
    `MAX_TOLD` characters. It names fields and limits and quotes nothing that people wrote.
    """

    MAX_TOLD = 300

    def __init__(self, reason: str, tell: str = "") -> None:
        super().__init__(reason)
        self.tell = tell[: self.MAX_TOLD]


@dataclass(frozen=True, slots=True)
class Cadence:
    """How often a behavior learns: after so many turns, tokens or seconds of quiet.

    The first limit that is reached counts. Tokens are a limit because long messages leave the
    prompt's window sooner than short ones.
    """

    every_turns: int = 4
    after_s: float = 30.0
    max_tokens: int = 3_000


class LearningBehavior(AIContextBehavior):
    """Base of behaviors that learn by their part of one structured model call.

    A subclass sets the attributes and writes `prompt_input` and `learn`. It may also decide by
    itself when it is due and which messages it takes. `name` is part of stored field names, so it
    never changes.
    """

    part: type[BaseModel]  # the model of its part of the answer
    task: str  # tells the model what to write there; it is constant
    is_personal: bool = False  # it writes to `Batch.facts`, in private chats the person's scope
    cadence: Cadence = Cadence()

    def is_due(self, unlearned: Unlearned) -> bool:
        """Return whether to learn now."""
        turns = len({message.exchange for message in unlearned.messages})
        return (
            unlearned.is_asked_for
            or turns >= self.cadence.every_turns
            or unlearned.quiet_s >= self.cadence.after_s
            or unlearned.tokens >= self.cadence.max_tokens
        )

    def due_in(self, unlearned: Unlearned) -> float:
        """Return after how many more quiet seconds it is due; infinity for never."""
        return max(0.0, self.cadence.after_s - unlearned.quiet_s)

    def select_messages(self, unlearned: Unlearned) -> Sequence[Message]:
        """Return the messages to learn from now: the first one and those that follow it."""
        return unlearned.messages

    def prompt_input(self, batch: Batch) -> str:
        """Return what is known already, so that the model can bring it up to date."""
        raise NotImplementedError

    def learn(self, batch: Batch, answer: Any) -> Learned:
        """Return what is to be written; raise `PartRejected`. Reads and writes nothing itself.

        `answer` is a `part`.
        """
        raise NotImplementedError
