"""How many turns and tokens one person may have, in all processes together.

The counts hold only ids and numbers. They expire: turns after an hour, tokens after two days. A
turn that is begun again counts once. `usage` counts the tokens.
"""

from dataclasses import dataclass
from enum import StrEnum
from time import time
from typing import Literal

from memory.store.store import Store

_WINDOW_MS = 60_000
_KNOWN_MS = 3_600_000
"""A turn that is begun again within this time counts once."""
DAY_S = 86_400

_IN_GROUP_MS = 30_000
_TOLD_IN_GROUP_MS = 60_000
GroupUse = Literal["press", "message", "urgent", "part", "all"]
_MAX_IN_GROUP: dict[GroupUse, int] = {"press": 4, "message": 5, "urgent": 6, "part": 0, "all": 12}
"""What one member gets in a group within `_IN_GROUP_MS`: further uses are refused from so many on.

Telegram takes 20 messages a minute for all members together, and five of these at once. An urgent
message is a command that erases or stops; a part is one more message of an answer, which counts.
"all" is what all members get within `_WINDOW_MS` beside answers of a model.
"""


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
        turns, told = self._keys.usage("turns", person), self._keys.usage("refused", person)
        request = {
            "turn": turn,
            "max_turns": 0 if is_task else quota.turns_per_minute,
            "window_ms": _WINDOW_MS,
            "told_ms": _WINDOW_MS,
            "max_tokens": quota.tokens_per_day,
            "is_task": is_task,
        }
        return await self._admit((turns, told, self._spent_by(person)), request)

    async def admit_in_group(
        self, chat_id: int, sender_id: int, name: str, use: GroupUse, command: str = ""
    ) -> Verdict:
        """Count what a member gets in a group, in all its topics; a repeat gets the same answer.

        After a refused message none is admitted for a minute, as its notice says. An urgent
        `command` has its own notice. All channels that write in a group are one member, because a
        person may write in the name of many.
        """
        member = sender_id if sender_id > 0 or sender_id == chat_id else 0
        member = -1 if use == "all" else member
        turns = self._keys.usage("turns", chat_id, member)
        told = self._keys.usage("refused", chat_id, member, command or use)
        request = {
            "turn": name,
            "max_turns": _MAX_IN_GROUP[use],
            "window_ms": _WINDOW_MS if use == "all" else _IN_GROUP_MS,
            "told_ms": _IN_GROUP_MS if use == "press" else _TOLD_IN_GROUP_MS,
            "max_tokens": 0,
        }
        return await self._admit((turns, told, self._spent_by(member)), request)

    async def _admit(self, keys: tuple[str, str, str], request: dict[str, object]) -> Verdict:
        request["known_ms"] = _KNOWN_MS
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
