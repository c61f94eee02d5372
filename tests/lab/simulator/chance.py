"""What goes wrong in a schedule, and how often: drawn from its seed."""

from collections.abc import Collection, Mapping, Sequence
from random import Random
from typing import Final

_STORE: Final = ("crash", "crash after", "pause", "lost", "unavailable", "repeated", "late")
_SEND: Final = (
    *("crash", "crash after", "pause"),
    *("flood", "long flood", "unreachable", "unknown", "unknown sent", "late", "blocked"),
)
_MODEL: Final = ("crash", "pause", "fails", "hangs")
_EMBEDDER: Final = ("crash", "fails", "hangs")
_TURN: Final = ("bug",)
_INTAKE: Final = ("acknowledgement lost", "twice", "late")

_RATES: Final = (0.0, 0.0, 0.004, 0.02)
"""Probabilities that a fault happens at one call; each schedule draws one for each fault."""

_OFTEN: Final = 0.05

MAX_CRASHES: Final = 6


class Chance:
    """Draws everything random of one schedule. Once `is_calm` is set, no fault happens any more.

    Faults named in `often` have a fixed high probability.
    """

    def __init__(self, seed: int, often: Collection[str] = ()) -> None:
        self.random = Random(seed)
        self.is_calm = False
        self._often = often
        self._crashes = 0
        self._tables: Mapping[str, Sequence[tuple[float, str]]] = {
            "store": self._table(_STORE, 1),
            "send": self._table(_SEND, 4),
            "model": self._table(_MODEL, 6),
            "turn": self._table(_TURN, 4),
            "embedder": self._table(_EMBEDDER, 8),
            "intake": self._table(_INTAKE, 8),
        }

    def fate(self, where: str) -> str:
        """Return the fault of a call, "" for none."""
        if self.is_calm:
            return ""
        drawn = self.random.random()
        for below, fate in self._tables[where]:
            if drawn < below:
                return self._allowed(fate)
        return ""

    def latency(self) -> float:
        """Return how many seconds one way of a call takes: nearly always few, sometimes many."""
        drawn = self.random.random()
        if drawn < 0.9:
            return drawn * 0.002
        if drawn < 0.99:
            return (drawn - 0.9) * 0.5
        return (drawn - 0.99) * (5 if self.is_calm else 40)

    def patience(self) -> float:
        """Return after how many seconds an unanswered call is repeated, at times after a lease."""
        return self.random.choice((0.001, 0.1, 2.0, 12.0)) * self.random.random()

    def pause(self) -> float:
        """Return for how many seconds a process is stopped, often for longer than a lease."""
        return self.random.choice((0.05, 0.5, 2.0, 4.0, 7.0)) * self.random.uniform(0.5, 1.5)

    def _allowed(self, fate: str) -> str:
        if fate.startswith("crash"):
            self._crashes += 1
            if self._crashes > MAX_CRASHES:
                return ""
        return fate

    def _table(self, fates: Sequence[str], weight: float) -> list[tuple[float, str]]:
        """Return the faults that may happen, each with the number that the draw is below."""
        below, table = 0.0, []
        for fate in fates:
            rate = self.random.choice(_RATES) * weight
            if fate in self._often:
                rate = _OFTEN * weight
            below += rate
            if rate:
                table.append((below, fate))
        return table
