"""What people have seen of a scope in `/memory`, and what they were told of its claims."""

from dataclasses import dataclass
from typing import Self

from memory.scopes.field import Field, stays


@dataclass(frozen=True, slots=True)
class Looked(Field):
    """`newest` is the newest record of a scope when people last looked at it with `/memory`.

    `update_id` is that of the command. `before` is the `newest` of the look before it.
    """

    PREFIX = "looked"
    update_id: int
    before: int
    newest: int

    without = stays

    def _stored(self) -> str:
        return f"{self.update_id}|{self.before}|{self.newest}"

    @classmethod
    def _read(cls, _: str, stored: str) -> Self:
        return cls(*map(int, stored.split("|")))


@dataclass(frozen=True, slots=True)
class ClaimsChecked(Field):
    """The newest answer whose claim to have saved something was compared with what was kept."""

    PREFIX = "claims_checked"
    seq: int

    without = stays

    def _stored(self) -> str:
        return str(self.seq)

    @classmethod
    def _read(cls, _: str, stored: str) -> Self:
        return cls(int(stored))
