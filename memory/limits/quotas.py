"""How many turns and tokens one person may have, in all processes together.

The counts hold only ids and numbers. They expire: turns after an hour, tokens after two days. A
turn that is begun again counts once. `usage` counts the tokens.
"""

from dataclasses import dataclass
from enum import StrEnum
from time import time

from memory.store.store import Store

_WINDOW_MS = 60_000
_KNOWN_MS = 3_600_000
"""A turn that is begun again within this time counts once."""
DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Quota:
    """What one person may have; 0 means no bound. Days are those of UTC."""

    turns_per_minute: int
    tokens_per_day: int


class Verdict(StrEnum):
    """Whether a turn may be answered, or which bound it exceeds.

    One turn tells the person about a bound; later turns are `SILENCED`.
    """

    ADMITTED = "admitted"
    TURNS = "turns"
    TOKENS = "tokens"
    BUDGET = "budget"
    SILENCED = "silenced"


class Quotas:
    """Counts turns. Its keys are in the slot of `usage`, which counts the tokens."""

    def __init__(self, store: Store) -> None:
        self._client = store.client
        self._keys = store.keys
        self._scripts = store.scripts

    async def admit(
        self, person: int, turn: str, quota: Quota, *, is_task: bool = False
    ) -> Verdict:
        """Count a turn and say whether it may be answered; a repeat gets the same answer.

        Tasks may all be due at once: only tokens bound them, and one is never `SILENCED`.
        """
        keys = (
            self._keys.usage("turns", person),
            self._keys.usage("refused", person),
            self._spent_by(person),
        )
        request = {
            "turn": turn,
            "max_turns": 0 if is_task else quota.turns_per_minute,
            "window_ms": _WINDOW_MS,
            "max_tokens": quota.tokens_per_day,
            "known_ms": _KNOWN_MS,
            "is_task": is_task,
        }
        return Verdict((await self._scripts["admit_turn"](keys, request)).decode())

    async def is_used_up(self, person: int, quota: Quota) -> bool:
        """Return whether a turn would be refused now; nothing is counted or told."""
        now_ms = int(1000 * await self._client.server_time())
        spent, turns = await self._client.pipeline(
            [
                ("HGET", self._spent_by(person), "sum"),
                ("ZCOUNT", self._keys.usage("turns", person), f"({now_ms - _WINDOW_MS}", now_ms),
            ]
        )
        is_spent = 0 < quota.tokens_per_day <= int(spent or 0)
        return is_spent or 0 < quota.turns_per_minute <= turns

    async def spent_today(self, person: int) -> int:
        """Return the tokens of today's answers to a person."""
        return int(await self._client.call("HGET", self._spent_by(person), "sum") or 0)

    async def is_first_today(self, person: int, turn: str, what: str) -> bool:
        """Return whether this turn is the first one today to tell a person `what`."""
        key = self._spent_by(person)
        _, first, _ = await self._client.pipeline(
            [("HSETNX", key, what, turn), ("HGET", key, what), ("EXPIRE", key, 2 * DAY_S)]
        )
        return bool(first == turn.encode())

    def _spent_by(self, person: int) -> str:
        return self._keys.usage("spent", int(time()) // DAY_S, person)
