"""How long one conversation waits when learning from it failed: from a minute to a day.

Kept as a field of its notebook, so that a restart does not begin again. A success removes it, and
another model does not wait for what its predecessor could not do.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from memory.scopes.scope_memory import ScopeMemory

_FIRST_S = 60
_LONGEST_S = 86_400

Kind = Literal["lessons", "vectors"]


@dataclass(frozen=True, slots=True)
class Pause:
    """The pause of one conversation: failures in a row, and when to try again (Unix seconds)."""

    kind: Kind
    model: str
    stored: str = ""
    failures: int = 0
    again_at: float = 0

    @classmethod
    def of(cls, here: ScopeMemory, kind: Kind, model: str) -> "Pause":
        """Read what is stored of a conversation; nothing counts that another model did."""
        stored = here.fields.get(_field(kind), "")
        failures, _, rest = stored.partition("|")
        again_at, _, of_model = rest.partition("|")
        if not stored or of_model != model:
            return cls(kind, model, stored)
        return cls(kind, model, stored, int(failures), float(again_at))

    def is_over(self, now: float) -> bool:
        """Say whether it may be tried."""
        return self.again_at <= now

    def after_failure(self, now: float) -> tuple[float, Mapping[str, tuple[str, str]]]:
        """Return for how many seconds it waits now, and the fields that say so."""
        pause_s = float(min(_FIRST_S * 2**self.failures, _LONGEST_S))
        wanted = f"{self.failures + 1}|{now + pause_s:.0f}|{self.model}"
        return pause_s, {_field(self.kind): (self.stored, wanted)}

    def after_success(self) -> Mapping[str, tuple[str, str]]:
        """Return the fields that end it; none where there was none."""
        return {_field(self.kind): (self.stored, "")} if self.stored else {}


def _field(kind: Kind) -> str:
    return f"pause:{kind}"
