"""How many turns and tokens one person may have, in all processes together.

The counts hold only ids and numbers. They expire: turns after an hour, all others after two days. A
turn that is begun again counts once. `usage` counts the tokens.
"""

from dataclasses import dataclass
from enum import StrEnum
from time import time

from memory.store.keys import Scope
from memory.store.store import Store

_WINDOW_MS = 60_000
DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Quota:
    """What one person may have; 0 means no bound. Days are those of UTC.

    After a notice nothing more is said for `told_ms`, whatever is refused. If that is longer than
    the window, no turn is admitted meanwhile.
    """

    turns: int  # in a window
    tokens_per_day: int = 0
    window_ms: int = _WINDOW_MS
    told_ms: int = _WINDOW_MS


_IN_GROUP = {
    "press": Quota(4, window_ms=30_000, told_ms=30_000),
    "message": Quota(5, window_ms=30_000),
    "all": Quota(12),  # of all members together, beside answers of a model
}
"""What one member gets in a group, by use. Telegram takes 20 messages a minute for all members
together, and five of these at once."""
_ERASING = Quota(6, window_ms=30_000)  # the same for each command that erases or stops
_MAX_LEARNED_AGAIN = 1_000  # messages in a day; an edit that begins below it has all learned again


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
    """Counts turns. Its keys are in the slot of `usage`, which counts the tokens.

    If not `shares_groups`, a member of a group gets any number of answers.
    """

    def __init__(self, store: Store, *, shares_groups: bool = True) -> None:
        self._shares_groups = shares_groups
        self._client = store.client
        self._keys = store.keys
        self._scripts = store.scripts

    async def admit(
        self, who: int | str, turn: str, quota: Quota, use: str = "", *, is_task: bool = False
    ) -> Verdict:
        """Count a turn and say whether it may be answered; a repeat gets the same answer.

        `who` is a person or a member of a group; each `use` of a group has its own notice. Tasks
        may all be due at once: only tokens bound them, and one is never `SILENCED`.
        """
        told = self._keys.usage("refused", who, *([use] if use else []))
        request = {
            "turn": turn,
            "max_turns": 0 if is_task else quota.turns,
            "window_ms": quota.window_ms,
            "told_ms": quota.told_ms,
            "max_tokens": quota.tokens_per_day,
            "is_task": is_task,
        }
        keys = (self._keys.usage("turns", who), told, self._spent_by(who))
        return Verdict((await self._scripts["admit_turn"](keys, request)).decode())

    async def admit_in_group(self, chat_id: int, sender_id: int, name: str, use: str) -> Verdict:
        """Count what a member gets in a group, in all its topics.

        `use` is a key of `_IN_GROUP`, or the name of a command that erases or stops. All channels
        that write in a group are one member, because a person may write in the name of many.
        """
        if not self._shares_groups:
            return Verdict.ADMITTED
        member = sender_id if sender_id > 0 or sender_id == chat_id else 0
        who = f"{chat_id}:{-1 if use == 'all' else member}"
        return await self.admit(who, name, _IN_GROUP.get(use, _ERASING), use)

    async def is_used_up(self, person: int, quota: Quota) -> bool:
        """Return whether a turn would be refused now; nothing is counted or told."""
        is_spent = 0 < quota.tokens_per_day <= await self.spent_today(person)
        if is_spent or not quota.turns:
            return is_spent
        now_ms = int(1000 * await self._client.server_time())
        window = (f"({now_ms - _WINDOW_MS}", now_ms)
        turns = await self._client.call("ZCOUNT", self._keys.usage("turns", person), *window)
        return bool(turns >= quota.turns)

    async def spent_today(self, person: int) -> int:
        """Return the tokens of their quota that a person has spent today."""
        return int(await self._client.call("HGET", self._spent_by(person), "sum") or 0)

    async def is_first_today(self, person: int, turn: str, what: str) -> bool:
        """Return whether this turn is the first one today to tell a person `what`."""
        key = self._spent_by(person)
        _, first, _ = await self._client.pipeline(
            [("HSETNX", key, what, turn), ("HGET", key, what), ("EXPIRE", key, 2 * DAY_S)]
        )
        return bool(first == turn.encode())

    async def may_learn_again(self, conversation: Scope, sender_id: int, messages: int) -> bool:
        """Count messages that a sender's edit has learned again; return whether they may be."""
        key = self._spent_by(f"{conversation.tag}:{max(0, sender_id)}")  # channels are one sender
        commands = [("HINCRBY", key, "again", messages), ("EXPIRE", key, 2 * DAY_S)]
        counted, _ = await self._client.pipeline(commands)
        return int(counted) - messages < _MAX_LEARNED_AGAIN

    def _spent_by(self, person: int | str) -> str:
        return self._keys.usage("spent", int(time()) // DAY_S, person)
