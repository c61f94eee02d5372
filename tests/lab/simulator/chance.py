"""What goes wrong in a schedule, and how often: drawn from its seed."""

from collections.abc import Collection, Iterator, Mapping, Sequence
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
_INTAKE: Final = ("told nobody", "twice", "late")

_RATES: Final = (0.0, 0.0, 0.004, 0.02)
"""How often a thing goes wrong at one call; one of these for each thing in each schedule."""

_OFTEN: Final = 0.05

MAX_CRASHES: Final = 6


class Chance:
    """One schedule's luck; once it is calm nothing goes wrong any more.

    What is named in `often` goes wrong more frequently than by its rate in the seed.
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
        """Return what goes wrong with a call, "" for nothing."""
        if self.is_calm:
            return ""
        drawn = self.random.random()
        for below, fate in self._tables[where]:
            if drawn < below:
                return self._allowed(fate)
        return ""

    def latency(self) -> float:
        """Return how long one way of a call takes, in seconds: mostly nothing, at times much."""
        drawn = self.random.random()
        if drawn < 0.9:
            return drawn * 0.002
        if drawn < 0.99:
            return (drawn - 0.9) * 0.5
        return (drawn - 0.99) * (5 if self.is_calm else 40)

    def patience(self) -> float:
        """Return after how long a call without an answer is made again: at times a lease later."""
        return self.random.choice((0.001, 0.1, 2.0, 12.0)) * self.random.random()

    def pause(self) -> float:
        """Return for how long a process is stopped: often for longer than a lease."""
        return self.random.choice((0.05, 0.5, 2.0, 4.0, 7.0)) * self.random.uniform(0.5, 1.5)

    def _allowed(self, fate: str) -> str:
        if fate.startswith("crash"):
            self._crashes += 1
            if self._crashes > MAX_CRASHES:
                return ""
        return fate

    def _table(self, fates: Sequence[str], weight: float) -> list[tuple[float, str]]:
        return list(self._ascending(fates, weight))

    def _ascending(self, fates: Sequence[str], weight: float) -> Iterator[tuple[float, str]]:
        below = 0.0
        for fate in fates:
            rate = self.random.choice(_RATES) * weight
            if fate in self._often:
                rate = _OFTEN * weight
            below += rate
            if rate:
                yield below, fate
