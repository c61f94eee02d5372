"""Whether a person gets what they did not ask for: news of the operator, and tips."""

from dataclasses import dataclass
from typing import Self

from memory.scopes.changes import Write
from memory.scopes.fields import Field
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.scopes.sources import stays
from memory.store.keys import Scope

_MUTED = "1"


@dataclass(frozen=True, slots=True)
class Mute(Field):
    """In a person's scope: whether they want nothing unasked, and which update said so last."""

    PREFIX = "mute"
    is_muted: bool
    by_update: int

    without = stays

    def _stored(self) -> str:
        return f"{_MUTED if self.is_muted else ''}|{self.by_update}"

    @classmethod
    def _read(cls, _: str, stored: str) -> Self:
        muted, _, update = stored.partition("|")
        return cls(muted == _MUTED, int(update))


def mutes(person: ScopeMemory) -> bool:
    """Return whether a person wants nothing unasked."""
    found = person.get(Mute)
    return found is not None and found.is_muted


async def set_mute(scopes: Scopes, person: int, update_id: int, *, is_muted: bool) -> None:
    """Store what a person wants; a repeat for the same update changes nothing.

    Raise `StoreError`.
    """

    async def decide(here: ScopeMemory) -> Write | None:
        known = here.get(Mute)
        if known and known.by_update == update_id:
            return None
        return Write(fields=[Mute(is_muted, update_id)])

    await scopes.update(Scope.of_person(person), decide)
