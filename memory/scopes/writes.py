"""The writes that tools request. They are stored with the reply and carried out once, after it.

This module has the values and their stored form; `memory.learning` carries them out. A write with
`asks_first` waits until `sender_id` agrees with a button, whose id is `nonce`. Writes ask first if
the turn contained untrusted text. `old_text` shows people the facts that go; it is not stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import orjson

_ONLY_SHOWN = {"is_stored": False}


@dataclass(frozen=True, slots=True)
class Remember:
    """Keep a statement of `sender_id` as a fact; it replaces the fact `replaces` (0: none)."""

    text: str
    replaces: int = 0
    asks_first: bool = False
    sender_id: int = 0
    nonce: str = ""
    changes: bool = False
    is_pinned: bool = False
    kind: str = ""
    from_day: str = ""
    to_day: str = ""
    old_text: str = field(default="", compare=False, metadata=_ONLY_SHOWN)


@dataclass(frozen=True, slots=True)
class ForgetRecord:
    """Erase one fact, or several with `others`, which always asks first."""

    record_id: int
    asks_first: bool = False
    sender_id: int = 0
    nonce: str = ""
    others: tuple[int, ...] = ()
    old_text: str = field(default="", compare=False, metadata=_ONLY_SHOWN)

    @property
    def record_ids(self) -> tuple[int, ...]:
        """The ids of all facts that it erases."""
        return (self.record_id, *self.others)


@dataclass(frozen=True, slots=True)
class StillTrue:
    """Ask whether a fact still holds: yes confirms it, no erases it."""

    record_id: int
    asks_first: bool = True
    sender_id: int = 0
    nonce: str = ""
    old_text: str = field(default="", compare=False, metadata=_ONLY_SHOWN)

    @property
    def record_ids(self) -> tuple[int, ...]:
        """The id of the fact that a no erases."""
        return (self.record_id,)


@dataclass(frozen=True, slots=True)
class SetDomain:
    """Set fields of the running state's `domain` to those of a JSON object."""

    fields: str
    asks_first: bool = False
    sender_id: int = 0
    nonce: str = ""


@dataclass(frozen=True, slots=True)
class Keep:
    """Keep a text of an operator's behavior under a name; "" removes it."""

    behavior: str
    name: str
    text: str
    asks_first: bool = False
    sender_id: int = 0
    nonce: str = ""


ToolWrite = Remember | ForgetRecord | StillTrue | SetDomain | Keep

_KINDS: dict[str, type[ToolWrite]] = {
    "remember": Remember,
    "forget": ForgetRecord,
    "still": StillTrue,
    "domain": SetDomain,
    "keep": Keep,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def to_json(writes: Sequence[ToolWrite]) -> str:
    """Return the stored form, "" if there are no writes."""
    rows = []
    for write in writes:
        stored = [each for each in fields(write) if each.metadata.get("is_stored", True)]
        # What an earlier version does not know is stored only if it says something.
        while stored and getattr(write, stored[-1].name) == stored[-1].default:
            stored.pop()
        rows.append([_NAMES[type(write)], *(getattr(write, each.name) for each in stored)])
    return orjson.dumps(rows).decode() if rows else ""


def from_json(stored: str) -> tuple[ToolWrite, ...]:
    """Read the stored form; raise `ValueError` if it is not JSON."""
    writes: list[ToolWrite] = []
    for kind, *values in orjson.loads(stored) if stored else ():
        typed: list[Any] = [tuple(each) if isinstance(each, list) else each for each in values]
        writes.append(_KINDS[kind](*typed))
    return tuple(writes)
