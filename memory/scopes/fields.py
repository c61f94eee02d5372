"""Every kind of field of a scope's hash: one small class each, which alone writes and reads it."""

from dataclasses import dataclass, replace
from typing import Self

import orjson

from memory.scopes.field import Field, goes, goes_with_message, stays
from memory.scopes.writes import ForgetRecord, Remember, ToolWrite, from_json, to_json

STATE_LEARNER = "running_state"
"""The behavior that learns the running state."""


@dataclass(frozen=True, slots=True)
class State(Field):
    """The running state, as JSON."""

    PREFIX = "state"
    json: str

    without = goes

    def _stored(self) -> str:
        return self.json

    @classmethod
    def _read(cls, _: str, stored: str) -> Self:
        return cls(stored)


@dataclass(frozen=True, slots=True)
class StateUntrusted(Field):
    """Says that untrusted text went into the running state, now or before. It goes with it."""

    PREFIX = "state_untrusted"
    is_untrusted: bool

    without = goes

    def _stored(self) -> str:
        return "1" if self.is_untrusted else ""

    @classmethod
    def _read(cls, _: str, stored: str) -> Self:
        return cls(bool(stored))


@dataclass(frozen=True, slots=True)
class Watermark(Field):
    """Up to which message a behavior has learned.

    `learner` is the behavior's name. In another scope than the conversation's own it also names
    the conversation and its generation, because that scope may outlive the conversation.
    """

    PREFIX = "watermark"
    KEY = "learner"
    learner: str
    seq: int

    without = stays

    def _stored(self) -> str:
        return str(self.seq)

    @classmethod
    def _read(cls, key: str, stored: str) -> Self:
        return cls(key, int(stored))


@dataclass(frozen=True, slots=True)
class Failures(Field):
    """How often a behavior's part was bad in a row, and when it may be asked for again.

    `learner` is that of the watermark, `again_at` in Unix seconds.
    """

    PREFIX = "failures"
    KEY = "learner"
    learner: str
    count: int = 0
    again_at: float = 0

    without = stays

    def _stored(self) -> str:
        return f"{self.count}|{self.again_at:.0f}" if self.count else ""

    @classmethod
    def _read(cls, key: str, stored: str) -> Self:
        count, _, again_at = stored.partition("|")
        return cls(key, int(count or 0), float(again_at or 0))


@dataclass(frozen=True, slots=True)
class LearningPause(Field):
    """How long a conversation waits after a model failed: failures in a row, of which model.

    `task` is what the model is needed for, `again_at` in Unix seconds.
    """

    PREFIX = "pause"
    KEY = "task"
    task: str
    failures: int = 0
    again_at: float = 0
    model: str = ""

    without = stays

    def _stored(self) -> str:
        return f"{self.failures}|{self.again_at:.0f}|{self.model}" if self.failures else ""

    @classmethod
    def _read(cls, key: str, stored: str) -> Self:
        failures, again_at, model = stored.split("|", 2)
        return cls(key, int(failures), float(again_at), model)


@dataclass(frozen=True, slots=True)
class Digest(Field):
    """What tools did in a turn that is not learned yet; `seq` is the assistant's message."""

    PREFIX = "digest"
    KEY = "seq"
    seq: int
    text: str

    without = goes_with_message

    def _stored(self) -> str:
        return self.text

    @classmethod
    def _read(cls, key: str, stored: str) -> Self:
        return cls(int(key), stored)


@dataclass(frozen=True, slots=True)
class ToolWrites(Field):
    """What the tools of a turn want written, until learning carries it out.

    `turn` is the turn's id, `seq` the person's message that it answered.
    """

    PREFIX = "tool_writes"
    KEY = "turn"
    turn: str
    seq: int
    writes: tuple[ToolWrite, ...]

    without = goes_with_message

    def _stored(self) -> str:
        return f"{self.seq}|{to_json(self.writes).decode()}"

    @classmethod
    def _read(cls, key: str, stored: str) -> Self:
        seq, _, writes = stored.partition("|")
        return cls(key, int(seq), from_json(writes))


@dataclass(frozen=True, slots=True)
class Written(Field):
    """In a person's scope: the newest turn of a conversation whose tool writes were carried out."""

    PREFIX = "written"
    KEY = "tag"
    tag: str
    turn: str

    without = stays

    def _stored(self) -> str:
        return self.turn

    @classmethod
    def _read(cls, key: str, stored: str) -> Self:
        return cls(key, stored)


@dataclass(frozen=True, slots=True)
class Question(Field):
    """A write about which a person is asked by a button; once answered, its text is gone.

    `seq` is the message that it rests on, `asked_at` in Unix seconds, `answer` what was decided or
    "" while it is open.
    """

    PREFIX = "question"
    KEY = "nonce"
    nonce: str
    seq: int
    asked_at: float
    answer: str
    write: ToolWrite

    without = goes_with_message

    def answered(self, answer: str) -> Self:
        """Return what stays of it, so that a repeat gets the same answer."""
        return replace(self, answer=answer, write=ForgetRecord(0, sender_id=self.write.sender_id))

    def _stored(self) -> str:
        write = to_json([replace(self.write, nonce="")]).decode()
        return f"{self.seq}|{self.asked_at:.0f}|{self.answer}|{write}"

    @classmethod
    def _read(cls, key: str, stored: str) -> Self:
        seq, asked_at, answer, writes = stored.split("|", 3)
        return cls(key, int(seq), float(asked_at), answer, _asked_write(writes))


@dataclass(frozen=True, slots=True)
class Kept(Field):
    """A text that an operator's behavior keeps under a name; `seq` is the message it rests on."""

    PREFIX = "kept"
    KEY = "place"
    behavior: str
    label: str
    seq: int
    text: str

    without = goes_with_message

    @property
    def place(self) -> str:
        """The behavior, and the name under which it keeps the text."""
        return f"{self.behavior}:{self.label}"

    def _stored(self) -> str:
        return f"{self.seq}|{self.text}" if self.text else ""

    @classmethod
    def _read(cls, key: str, stored: str) -> Self:
        behavior, _, label = key.partition(":")
        seq, _, text = stored.partition("|")
        return cls(behavior, label, int(seq), text)


def _asked_write(stored: str) -> ToolWrite:
    """Read a write; a question of an older version held text, replaced fact and who was asked."""
    values = orjson.loads(stored)
    if values and isinstance(values[0], str):
        text, replaces, sender_id = values
        return Remember(text, replaces, sender_id=sender_id)
    (write,) = from_json(stored)
    return write
