"""`Field`: the base class of all fields of a scope's hash, and the usual rules for erasures.

A field is stored as `<prefix>:<key>` or, if there is only one of its kind, as `<prefix>`. Every
class has a rule that returns what is left of a field after an erasure. A class without a rule
cannot be defined, and only fields with a class can be written. So no field survives an erasure
unnoticed.
"""

from dataclasses import fields
from typing import Any, ClassVar, Protocol, Self, TypeVar

from memory.scopes.sources import Erased


class Field:
    """One field of a scope.

    A subclass sets `PREFIX` and defines `without`. `KEY` names the attribute that distinguishes
    fields of one kind, "" if there is only one. The other attributes are stored in their order,
    with `|` between them; one that is no text, number or bool needs `_stored` and `_read`.
    """

    __slots__ = ()

    PREFIX: ClassVar[str]
    KEY: ClassVar[str] = ""
    KINDS: ClassVar[dict[str, type["Field"]]] = {}

    def __init_subclass__(cls) -> None:
        """Register the class; raise `TypeError` if it has no rule or its prefix is taken."""
        for required in ("PREFIX", "without"):
            if required not in cls.__dict__:
                raise TypeError(f"{cls.__name__} does not define `{required}`")
        known = Field.KINDS.get(cls.PREFIX)
        if known is not None and known.__qualname__ != cls.__qualname__:
            raise TypeError(f"{cls.__name__} has the prefix of {known.__name__}")
        Field.KINDS[cls.PREFIX] = cls

    @property
    def key(self) -> str:
        """The part of the name after the prefix; "" if there is only one field of its kind."""
        return str(getattr(self, self.KEY)) if self.KEY else ""

    @property
    def name(self) -> str:
        """The name of the field in the scope's hash."""
        return name_of(type(self), self.key)

    @property
    def stored(self) -> str:
        """The stored value; "" if the field is to be removed."""
        return self._stored()

    @classmethod
    def read(cls, key: str, stored: str) -> Self:
        """Read a stored value."""
        return cls._read(key, stored)

    def without(self, erased: Erased) -> "Field | None":
        """Return what is left of the field after an erasure, None for nothing."""
        raise NotImplementedError

    def _stored(self) -> str:
        values = (getattr(self, name) for name in _types(type(self)) if name != self.KEY)
        return "|".join(map(_text, values))

    @classmethod
    def _read(cls, key: str, stored: str) -> Self:
        types = _types(cls)
        names = [name for name in types if name != cls.KEY]
        values = dict(zip(names, stored.split("|", len(names) - 1), strict=True))
        if cls.KEY:
            values[cls.KEY] = key
        return cls(**{name: types[name](value) for name, value in values.items()})


def _types(kind: Any) -> dict[str, Any]:
    return {each.name: each.type for each in fields(kind)}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "1" if value else ""
    return f"{value:.0f}" if isinstance(value, float) else str(value)


F = TypeVar("F", bound=Field)


def goes(field: Field, erased: Erased) -> None:
    """Erase the field at every erasure: the rule for fields that do not record their sources."""


class _FromMessage(Protocol):
    @property
    def seq(self) -> int: ...


M = TypeVar("M", bound=_FromMessage)


def goes_with_message(field: M, erased: Erased) -> M | None:
    """Erase the field if its message `seq` goes: the rule for fields that come from one message."""
    return None if erased.takes_message(field.seq) else field


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
