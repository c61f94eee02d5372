"""The fields of a scope's hash: one small class for each kind, which alone writes and reads it.

A field is stored as `<prefix>:<key>` or, if there is only one of its kind, as `<prefix>`. Every
class says what is left of it after an erasure. A class without that rule cannot be defined, and
only fields with a class can be written, so nothing survives an erasure unnoticed.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from dataclasses import fields as dataclass_fields
from typing import ClassVar, Self, TypeVar

import orjson

from memory.scopes.entries import Erased
from memory.scopes.writes import ForgetRecord, Remember, ToolWrite, from_json, to_json

STATE_LEARNER = "running_state"
"""The behavior that learns the running state."""


class Field:
    """One field of a scope. A subclass sets `PREFIX` and defines `without`, `stored` and `read`."""

    __slots__ = ()

    PREFIX: ClassVar[str]
    KINDS: ClassVar[dict[str, type["Field"]]] = {}

    def __init_subclass__(cls) -> None:
        """Register the class; raise `TypeError` if it lacks a rule or takes another's prefix."""
        for required in ("PREFIX", "without", "stored", "read"):
            if required not in cls.__dict__:
                raise TypeError(f"{cls.__name__} does not define `{required}`")
        known = Field.KINDS.get(cls.PREFIX)
        if known is not None and known.__qualname__ != cls.__qualname__:
            raise TypeError(f"{cls.__name__} has the prefix of {known.__name__}")
        Field.KINDS[cls.PREFIX] = cls

    @property
    def key(self) -> str:
        """What tells it from other fields of its kind; "" if there is only one."""
        return ""

    @property
    def name(self) -> str:
        """The name of the field in the scope's hash."""
        return name_of(type(self), self.key)

    @property
    def stored(self) -> str:
        """The stored value; "" if the field is to be removed."""
        raise NotImplementedError

    @classmethod
    def read(cls, key: str, stored: str) -> Self:
        """Read a stored value."""
        raise NotImplementedError

    def without(self, erased: Erased) -> "Field | None":
        """Return what is left of it after an erasure, None for nothing."""
        raise NotImplementedError


F = TypeVar("F", bound=Field)


def name_of(kind: type[Field], key: str = "") -> str:
    """Return the stored name of a field."""
    return f"{kind.PREFIX}:{key}" if key else kind.PREFIX


def kind_of(name: str) -> type[Field] | None:
    """Return the class of a stored field; None for a field that this version does not know."""
    return Field.KINDS.get(name.partition(":")[0])


def read_field(name: str, stored: str) -> Field | None:
    """Read one stored field; None for a field that this version does not know."""
    kind = kind_of(name)
    return kind.read(name.partition(":")[2], stored) if kind else None


def fields_of(kind: type[F], stored: Mapping[str, str]) -> list[F]:
    """Return all fields of one kind."""
    found = ((name.partition(":"), value) for name, value in stored.items())
    return [kind.read(key, value) for (prefix, _, key), value in found if prefix == kind.PREFIX]


@dataclass(frozen=True, slots=True)
class State(Field):
    """The running state, as JSON. It does not know its sources, so it goes with any message."""

    PREFIX = "state"
    json: str

    @property
    def stored(self) -> str:
        """The JSON itself."""
        return self.json

    @classmethod
    def read(cls, key: str, stored: str) -> Self:  # noqa: ARG003 - there is only one
        """Read the JSON."""
        return cls(stored)

    def without(self, erased: Erased) -> None:  # noqa: ARG002 - nothing is left of it
        """Leave nothing."""
        return


@dataclass(frozen=True, slots=True)
class StateUntrusted(Field):
    """Says that untrusted text went into the running state, now or before. It goes with it."""

    PREFIX = "state_untrusted"
    is_untrusted: bool

    @property
    def stored(self) -> str:
        """A flag."""
        return "1" if self.is_untrusted else ""

    @classmethod
    def read(cls, key: str, stored: str) -> Self:  # noqa: ARG003 - there is only one
        """Read the flag."""
        return cls(bool(stored))

    def without(self, erased: Erased) -> None:  # noqa: ARG002 - nothing is left of it
        """Leave nothing."""
        return


@dataclass(frozen=True, slots=True)
class Watermark(Field):
    """Up to which message a behavior has learned; only a number, so it stays.

    `learner` is the behavior's name. In another scope than the conversation's own it also names
    the conversation and its generation, because that scope may outlive the conversation.
    """

    PREFIX = "watermark"
    learner: str
    seq: int

    @property
    def key(self) -> str:
        """The behavior, and the conversation if that is another scope."""
        return self.learner

    @property
    def stored(self) -> str:
        """The sequence."""
        return str(self.seq)

    @classmethod
    def read(cls, key: str, stored: str) -> Self:
        """Read the sequence."""
        return cls(key, int(stored))

    def without(self, erased: Erased) -> Self:  # noqa: ARG002 - it rests on nothing
        """Stay as it is."""
        return self


@dataclass(frozen=True, slots=True)
class Failures(Field):
    """How often a behavior's part was bad in a row, and when it may be asked for again.

    `learner` is that of the watermark, `again_at` in Unix seconds.
    """

    PREFIX = "failures"
    learner: str
    count: int = 0
    again_at: float = 0

    @property
    def key(self) -> str:
        """The behavior, as in its watermark."""
        return self.learner

    @property
    def stored(self) -> str:
        """Count and time; nothing after a success."""
        return f"{self.count}|{self.again_at:.0f}" if self.count else ""

    @classmethod
    def read(cls, key: str, stored: str) -> Self:
        """Read count and time."""
        count, _, again_at = stored.partition("|")
        return cls(key, int(count or 0), float(again_at or 0))

    def without(self, erased: Erased) -> Self:  # noqa: ARG002 - it rests on nothing
        """Stay as it is."""
        return self


@dataclass(frozen=True, slots=True)
class LearningPause(Field):
    """How long a conversation waits after a model failed: failures in a row, of which model.

    `task` is what the model is needed for, `again_at` in Unix seconds.
    """

    PREFIX = "pause"
    task: str
    failures: int = 0
    again_at: float = 0
    model: str = ""

    @property
    def key(self) -> str:
        """What the model is needed for."""
        return self.task

    @property
    def stored(self) -> str:
        """Failures, time and model; nothing after a success."""
        return f"{self.failures}|{self.again_at:.0f}|{self.model}" if self.failures else ""

    @classmethod
    def read(cls, key: str, stored: str) -> Self:
        """Read failures, time and model."""
        failures, again_at, model = stored.split("|", 2)
        return cls(key, int(failures), float(again_at), model)

    def without(self, erased: Erased) -> Self:  # noqa: ARG002 - it rests on nothing
        """Stay as it is."""
        return self


@dataclass(frozen=True, slots=True)
class Digest(Field):
    """What tools did in a turn that is not learned yet; `seq` is the assistant's message."""

    PREFIX = "digest"
    seq: int
    text: str

    @property
    def key(self) -> str:
        """The sequence of the assistant's message."""
        return str(self.seq)

    @property
    def stored(self) -> str:
        """The text."""
        return self.text

    @classmethod
    def read(cls, key: str, stored: str) -> Self:
        """Read the text."""
        return cls(int(key), stored)

    def without(self, erased: Erased) -> Self | None:
        """Go with its message."""
        return None if erased.takes_message(self.seq) else self


@dataclass(frozen=True, slots=True)
class ToolWrites(Field):
    """What the tools of a turn want written, until learning carries it out.

    `turn` is the turn's id, `seq` the person's message that it answered.
    """

    PREFIX = "tool_writes"
    turn: str
    seq: int
    writes: tuple[ToolWrite, ...]

    @property
    def key(self) -> str:
        """The turn's id."""
        return self.turn

    @property
    def stored(self) -> str:
        """The sequence, then the writes as JSON."""
        return f"{self.seq}|{to_json(self.writes).decode()}"

    @classmethod
    def read(cls, key: str, stored: str) -> Self:
        """Read sequence and writes."""
        seq, _, writes = stored.partition("|")
        return cls(key, int(seq), from_json(writes))

    def without(self, erased: Erased) -> Self | None:
        """Go with its message."""
        return None if erased.takes_message(self.seq) else self


@dataclass(frozen=True, slots=True)
class Written(Field):
    """In a person's scope: the newest turn of a conversation whose tool writes were carried out."""

    PREFIX = "written"
    tag: str
    turn: str

    @property
    def key(self) -> str:
        """The tag of the conversation."""
        return self.tag

    @property
    def stored(self) -> str:
        """The turn's id."""
        return self.turn

    @classmethod
    def read(cls, key: str, stored: str) -> Self:
        """Read the turn's id."""
        return cls(key, stored)

    def without(self, erased: Erased) -> Self:  # noqa: ARG002 - it rests on nothing
        """Stay as it is."""
        return self


@dataclass(frozen=True, slots=True)
class Question(Field):
    """A write about which a person is asked by a button; once answered, its text is gone.

    `seq` is the message that it rests on, `asked_at` in Unix seconds, `answer` what was decided or
    "" while it is open.
    """

    PREFIX = "question"
    nonce: str
    seq: int
    asked_at: float
    answer: str
    write: ToolWrite

    @property
    def key(self) -> str:
        """The nonce under the button."""
        return self.nonce

    @property
    def stored(self) -> str:
        """Sequence, time and answer, then the write as JSON."""
        write = to_json([replace(self.write, nonce="")]).decode()
        return f"{self.seq}|{self.asked_at:.0f}|{self.answer}|{write}"

    @classmethod
    def read(cls, key: str, stored: str) -> Self:
        """Read sequence, time, answer and write."""
        seq, asked_at, answer, writes = stored.split("|", 3)
        return cls(key, int(seq), float(asked_at), answer, _asked_write(writes))

    def answered(self, answer: str) -> Self:
        """Return what stays of it, so that a repeat gets the same answer."""
        return replace(self, answer=answer, write=ForgetRecord(0, sender_id=self.write.sender_id))

    def without(self, erased: Erased) -> Self | None:
        """Go with its message."""
        return None if erased.takes_message(self.seq) else self


@dataclass(frozen=True, slots=True)
class Kept(Field):
    """A text that an operator's behavior keeps under a name; `seq` is the message it rests on."""

    PREFIX = "kept"
    behavior: str
    label: str
    seq: int
    text: str

    @property
    def key(self) -> str:
        """Behavior and name."""
        return f"{self.behavior}:{self.label}"

    @property
    def stored(self) -> str:
        """The sequence, then the text; nothing without a text."""
        return f"{self.seq}|{self.text}" if self.text else ""

    @classmethod
    def read(cls, key: str, stored: str) -> Self:
        """Read sequence and text."""
        behavior, _, label = key.partition(":")
        seq, _, text = stored.partition("|")
        return cls(behavior, label, int(seq), text)

    def without(self, erased: Erased) -> Self | None:
        """Go with its message."""
        return None if erased.takes_message(self.seq) else self


@dataclass(frozen=True, slots=True)
class Document(Field):
    """A document as the list shows it; its passages are records.

    `of_name` is the short key of its name. `digest` is of its content, so that the same content is
    not embedded again. `added_at` (Unix seconds) stands in its passages too and tells them from
    those of an older content. `sender_id` is who sent it, 0 for the operator.
    """

    PREFIX = "document"
    of_name: str
    title: str
    digest: str
    passages: int
    added_at: float
    link: str = ""
    nbytes: int = 0
    sender_id: int = 0

    @property
    def key(self) -> str:
        """The short key of its name, as it stands under buttons."""
        return self.of_name

    @property
    def stored(self) -> str:
        """All but the key, as JSON."""
        described = asdict(self)
        del described["of_name"]
        return orjson.dumps(described).decode()

    @classmethod
    def read(cls, key: str, stored: str) -> Self:
        """Read the JSON, passing over what another version added."""
        known = {each.name for each in dataclass_fields(cls)}
        described = orjson.loads(stored)
        return cls(key, **{name: value for name, value in described.items() if name in known})

    def without(self, erased: Erased) -> Self | None:
        """Go with what its sender sent up to then."""
        return None if erased.takes_from(self.sender_id, self.added_at) else self


def _asked_write(stored: str) -> ToolWrite:
    """Read a write; a question of an older version held text, replaced fact and who was asked."""
    values = orjson.loads(stored)
    if values and isinstance(values[0], str):
        text, replaces, sender_id = values
        return Remember(text, replaces, sender_id=sender_id)
    (write,) = from_json(stored)
    return write
