"""How long one conversation waits when learning from it failed: from a minute to a day.

Kept as a field of its notebook, so that a restart does not begin again. A success removes it, and
another model does not wait for what its predecessor could not do.
"""

from dataclasses import dataclass, replace
from typing import Literal

from memory.scopes.fields import LearningPause
from memory.scopes.scope_memory import ScopeMemory

_FIRST_S = 60
_LONGEST_S = 86_400

Kind = Literal["lessons", "vectors"]


@dataclass(frozen=True, slots=True)
class Pause:
    """The pause of one conversation for one kind of work with one model.

    `is_stored` says whether the scope has a field of it, of whichever model.
    """

    field: LearningPause
    is_stored: bool

    @classmethod
    def of(cls, here: ScopeMemory, kind: Kind, model: str) -> "Pause":
        """Read what is stored of a conversation; failures of another model do not count."""
        stored = here.get(LearningPause, kind)
        if stored is None or stored.model != model:
            return cls(LearningPause(kind, model=model), stored is not None)
        return cls(stored, is_stored=True)

    @property
    def failures(self) -> int:
        """How often it failed in a row."""
        return self.field.failures

    @property
    def again_at(self) -> float:
        """When to try again, in Unix seconds."""
        return self.field.again_at

    def is_over(self, now: float) -> bool:
        """Say whether it may be tried."""
        return self.again_at <= now

    def after_failure(self, now: float) -> tuple[float, list[LearningPause]]:
        """Return for how many seconds it waits now, and the field that says so."""
        pause_s = float(min(_FIRST_S * 2**self.failures, _LONGEST_S))
        more = replace(self.field, failures=self.failures + 1, again_at=now + pause_s)
        return pause_s, [more]

    def after_success(self) -> list[LearningPause]:
        """Return the field that ends it; none if there was none."""
        return [LearningPause(self.field.task)] if self.is_stored else []
