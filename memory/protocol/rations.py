"""Rations: how many turns and tokens one person may have, counted across all processes.

Counts hold ids and numbers, nothing that was said, and expire by themselves: turns after a minute,
tokens after two days. A turn that is begun again counts once.
"""

from dataclasses import dataclass
from enum import StrEnum
from time import time

from memory.protocol.store import Store

_WINDOW_MS = 60_000
_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Ration:
    """What one person may have; 0 is no bound. A day is that of UTC."""

    turns_per_minute: int
    tokens_per_day: int


class Verdict(StrEnum):
    """Whether a turn may be answered; of a bound only one turn is told, later ones are `TOLD`."""

    ADMITTED = "admitted"
    TURNS = "turns"
    TOKENS = "tokens"
    TOLD = "told"


class Rations:
    """Counts, in each person's slot."""

    def __init__(self, store: Store) -> None:
        self._keys = store.keys
        self._scripts = store.scripts

    async def admit(self, person: int, turn: str, ration: Ration) -> Verdict:
        """Count a turn and say whether it may be answered; a repeat gets the same answer."""
        keys = (self._keys.turns_of(person), self._keys.told_of(person), self._tokens_of(person))
        arguments = (turn, ration.turns_per_minute, _WINDOW_MS, ration.tokens_per_day)
        return Verdict((await self._scripts["ration"](keys, arguments)).decode())

    async def spend(self, person: int, turn: str, tokens: int) -> int:
        """Note what a turn has taken, and return how much it is today; a repeat counts once."""
        arguments = (turn, tokens, 2 * _DAY_S)
        return int(await self._scripts["spend"]([self._tokens_of(person)], arguments))

    def _tokens_of(self, person: int) -> str:
        return self._keys.tokens_of(person, int(time()) // _DAY_S)
