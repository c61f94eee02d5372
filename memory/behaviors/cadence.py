"""When a behavior learns that follows the conversation closely: often enough, or once it rests."""

from dataclasses import dataclass

from memory.learning.batch import Unlearned


@dataclass(frozen=True, slots=True)
class Cadence:
    """After so many exchanges or seconds of quiet, whichever comes first.

    So many tokens make it due as well: long messages leave the window sooner than short ones.
    """

    every_turns: int = 4
    after_s: float = 30.0
    max_tokens: int = 3_000

    def is_due(self, unlearned: Unlearned) -> bool:
        """Say whether it is time."""
        return (
            unlearned.exchanges >= self.every_turns
            or unlearned.quiet_s >= self.after_s
            or unlearned.tokens >= self.max_tokens
        )

    def due_in(self, unlearned: Unlearned) -> float:
        """Return after how many seconds of further quiet it will be time."""
        return max(0.0, self.after_s - unlearned.quiet_s)
