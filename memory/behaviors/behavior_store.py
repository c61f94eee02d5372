"""`BehaviorStore`: short texts that an operator's own behavior stores about a conversation.

A text rests on the message of the turn that stored it. It is erased with that message: by `/clear`,
by `/forget`, or when the message alone is forgotten. `/export` contains all of them. Nothing is
stored while memory is off, or by a turn without an answer.
"""

from dataclasses import dataclass
from typing import Self

from memory.behaviors.call_context import CallContext
from memory.scopes.field import Field, goes_with_message
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.scopes.writes import Keep

MAX_ENTRIES = 100
MAX_CHARS = 1_000


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
        """The behavior, and its name for the text."""
        return f"{self.behavior}:{self.label}"

    def _stored(self) -> str:
        return f"{self.seq}|{self.text}" if self.text else ""

    @classmethod
    def _read(cls, key: str, stored: str) -> Self:
        behavior, _, label = key.partition(":")
        seq, _, text = stored.partition("|")
        return cls(behavior, label, int(seq), text)


class CannotStore(Exception):
    """Raised if a text is too long, if there are too many, or if the turn was answered already."""


class BehaviorStore:
    """The texts of one behavior, by name; behaviors do not see those of others."""

    def __init__(self, scopes: Scopes, behavior: str) -> None:
        self._scopes = scopes
        self._behavior = behavior

    async def read(self, call_context: CallContext) -> dict[str, str]:
        """Return the texts of this conversation by name, those that this turn stores included."""
        here = await self._scopes.current(call_context.conversation)
        found = stored_by_behaviors(here).get(self._behavior, {})
        for write in (*here.waiting_writes, *(call_context.writes or ())):
            if isinstance(write, Keep) and write.behavior == self._behavior:
                found.pop(write.name, None)
                if write.text:
                    found[write.name] = write.text
        return found

    async def keep(self, call_context: CallContext, name: str, text: str) -> None:
        """Store a text under a name, in place of an older one; "" removes it. Raise `CannotStore`.

        Only tools (with `context.call_context`) and hooks that run before the answer may call it.
        """
        if call_context.writes is None:
            raise CannotStore("the turn has its answer already")
        stored = await self.read(call_context)
        if len(name) + len(text) > MAX_CHARS:
            raise CannotStore(f"more than {MAX_CHARS} characters")
        if text and name not in stored and len(stored) >= MAX_ENTRIES:
            raise CannotStore(f"more than {MAX_ENTRIES} entries")
        call_context.writes.append(Keep(self._behavior, name, text))


def stored_by_behaviors(here: ScopeMemory) -> dict[str, dict[str, str]]:
    """Return the texts of all behaviors about a conversation, by behavior and name."""
    kept: dict[str, dict[str, str]] = {}
    for each in here.all(Kept):
        kept.setdefault(each.behavior, {})[each.label] = each.text
    return kept
