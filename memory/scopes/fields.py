"""The fields of a scope's hash: their base class, and each kind, which alone writes and reads it.

A field is stored as `<prefix>:<key>` or, if there is only one of its kind, as `<prefix>`. A class
without a rule for erasures cannot be defined, and only fields with a class can be written. So no
field survives an erasure unnoticed.
"""

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Protocol, Self, TypeVar, get_origin

from memory.scopes.sources import Erased, never_erased, register
from memory.scopes.writes import ForgetRecord, ToolWrite, from_json, to_json


class Field:
    """One field of a scope.

    A subclass sets `PREFIX` and defines `without`. `KEY` names the attribute that distinguishes
    fields of one kind, "" if there is only one. The other attributes are stored in their order,
    with `|` between them. They are texts, numbers, bools and tuples of words; any other type needs
    its own `stored` and `read`. Those that an older version has not stored have their defaults. If
    the attribute that `NEEDS` names is empty, the field is removed.
    """

    __slots__ = ()

    PREFIX: ClassVar[str]
    KEY: ClassVar[str] = ""
    NEEDS: ClassVar[str] = ""
    KINDS: ClassVar[dict[str, type["Field"]]] = {}

    def __init_subclass__(cls) -> None:
        """Register the class; raise `TypeError` if that is not safe."""
        register(Field.KINDS, cls, "PREFIX", ("key", "name", "stored", "read"))

    @property
    def key(self) -> str:
        """The part of the name after the prefix; "" if there is only one field of its kind."""
        return str(getattr(self, self.KEY)) if self.KEY else ""

    @property
    def name(self) -> str:
        """The name of the field in the scope's hash."""
        return name_of(type(self), self.key)

    def without(self, erased: Erased) -> "Field | None":
        """Return what is left of the field after an erasure, None for nothing."""
        raise NotImplementedError

    @property
    def stored(self) -> str:
        """The stored value; "" if the field is to be removed."""
        if self.NEEDS and not getattr(self, self.NEEDS):
            return ""
        values = [getattr(self, name) for name in _types(type(self)) if name != self.KEY]
        return "|".join(map(_text, values)) if values else "1"

    @classmethod
    def read(cls, key: str, stored: str) -> Self:
        """Read a stored value."""
        types = _types(cls)
        names = [name for name in types if name != cls.KEY]
        values = dict(zip(names, stored.split("|", len(names) - 1), strict=False))
        if cls.KEY:
            values[cls.KEY] = key
        return cls(**{name: _value(types[name], stored) for name, stored in values.items()})


def _types(kind: Any) -> dict[str, Any]:
    return {each.name: each.type for each in fields(kind)}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "1" if value else ""
    if isinstance(value, tuple):
        return " ".join(value)
    return f"{value:.0f}" if isinstance(value, float) else str(value)


def _value(kind: Any, stored: str) -> object:
    if kind is bool:
        return stored == "1"
    return tuple(stored.split()) if get_origin(kind) is tuple else kind(stored)


F = TypeVar("F", bound=Field)


def always_erased(field: Field, erased: Erased) -> None:
    """Erase the field at every erasure: the rule for fields that do not record their sources."""


class _FromMessage(Protocol):
    @property
    def seq(self) -> int: ...


M = TypeVar("M", bound=_FromMessage)


def erased_with_message(field: M, erased: Erased) -> M | None:
    """Erase the field with its message `seq`: the rule for fields that come from one message."""
    is_erased = field.seq in erased.seqs or 0 < field.seq < erased.oldest
    return None if erased.is_here and is_erased else field


def name_of(kind: type[Field], key: str = "") -> str:
    """Return the stored name of a field."""
    return f"{kind.PREFIX}:{key}" if key else kind.PREFIX


def read_field(name: str, stored: str) -> Field | None:
    """Read one stored field; None for a field that this version does not know."""
    prefix, _, key = name.partition(":")
    kind = Field.KINDS.get(prefix)
    return kind.read(key, stored) if kind else None


UNASKED = "unasked"
_ASKED_BEFORE_S = 3_600
STATE_LEARNER = "running_state"  # the behavior that learns the running state


@dataclass(frozen=True, slots=True)
class State(Field):
    """The running state, as JSON."""

    PREFIX = "state"
    json: str

    without = always_erased


@dataclass(frozen=True, slots=True)
class StateUntrusted(Field):
    """Whether untrusted text has ever gone into the running state; erased together with it."""

    PREFIX = "state_untrusted"
    is_untrusted: bool

    without = always_erased


@dataclass(frozen=True, slots=True)
class Watermark(Field):
    """The newest message from which a behavior has learned."""

    PREFIX = "watermark"
    KEY = "learner"
    # The behavior's name. In another scope than the conversation's own it also names the
    # conversation and its generation, because that scope may outlive the conversation.
    learner: str
    seq: int

    without = never_erased


@dataclass(frozen=True, slots=True)
class Failures(Field):
    """How often in a row a behavior rejected its part of the answer, and when to ask again."""

    PREFIX = "failures"
    KEY = "learner"
    NEEDS = "count"
    learner: str  # named as in `Watermark`
    count: int = 0
    again_at: float = 0  # Unix seconds
    feedback: str = ""  # says why to the model; erased always, as an operator's behavior wrote it

    def without(self, erased: Erased) -> Self:  # noqa: ARG002 - every rule takes `erased`
        """Keep the numbers."""
        return replace(self, feedback="")


@dataclass(frozen=True, slots=True)
class LearningPause(Field):
    """How often in a row a model failed, and until when learning waits because of it."""

    PREFIX = "pause"
    KEY = "task"
    NEEDS = "failures"
    task: str  # what needs the model
    failures: int = 0
    again_at: float = 0  # Unix seconds
    model: str = ""

    without = never_erased


@dataclass(frozen=True, slots=True)
class Digest(Field):
    """What tools did in a turn, until learning reads it."""

    PREFIX = "digest"
    KEY = "seq"
    seq: int  # of the assistant's message
    text: str

    without = erased_with_message


@dataclass(frozen=True, slots=True)
class ToolWrites(Field):
    """The writes that the tools of a turn requested, until learning carries them out."""

    PREFIX = "tool_writes"
    KEY = "turn"
    turn: str  # the turn's id
    seq: int  # the person's message that it answered
    writes: tuple[ToolWrite, ...]

    without = erased_with_message

    @property
    def stored(self) -> str:
        """The message, and the writes as JSON."""
        return f"{self.seq}|{to_json(self.writes)}"

    @classmethod
    def read(cls, key: str, stored: str) -> Self:
        """Read a stored value."""
        seq, _, writes = stored.partition("|")
        return cls(key, int(seq), from_json(writes))


@dataclass(frozen=True, slots=True)
class Written(Field):
    """In a person's scope: the newest turn of a conversation whose tool writes are done."""

    PREFIX = "written"
    KEY = "tag"
    tag: str
    turn: str

    without = never_erased


@dataclass(frozen=True, slots=True)
class WaitingWrite(Field):
    """A write that waits until a person agrees with a button. The answer removes its text."""

    PREFIX = "question"
    KEY = "nonce"
    nonce: str
    seq: int  # the message that it rests on
    expires_at: float  # in Unix seconds; then it is removed without an answer
    answer: str  # what was decided: "" while it is open, `UNASKED` before it was asked
    write: ToolWrite

    without = erased_with_message

    def answered(self, answer: str) -> Self:
        """Return the answered question without its text, so that a repeat gets the same answer."""
        return replace(self, answer=answer, write=ForgetRecord(0, sender_id=self.write.sender_id))

    @property
    def stored(self) -> str:
        """The message, when it was asked, the answer, and the write as JSON."""
        write = to_json([replace(self.write, nonce="")])
        return f"{self.seq}|{self.expires_at - _ASKED_BEFORE_S:.0f}|{self.answer}|{write}"

    @classmethod
    def read(cls, key: str, stored: str) -> Self:
        """Read a stored value."""
        seq, asked_at, answer, writes = stored.split("|", 3)
        (write,) = from_json(writes)
        return cls(key, int(seq), float(asked_at) + _ASKED_BEFORE_S, answer, write)


@dataclass(frozen=True, slots=True)
class PersonsZone(Field):
    """In a person's scope: their time zone, as an IANA name."""

    PREFIX = "zone"
    zone: str

    without = never_erased
