"""Who may use the bot, how much one person may have, and how fast a chat may be sent to.

All of it holds for all processes together. The counts hold only ids and numbers. They expire: turns
after an hour, tokens after two days. A turn that is begun again counts once. `usage` counts the
tokens.
"""

from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from time import time

from memory.limits.usage import day_number
from memory.store.errors import StoreFull
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
        return self._keys.usage("spent", day_number(time()), person)


class Members:
    """Whom operators have let in or refused, as this process has read it; ids below 0: groups."""

    def __init__(self, store: Store) -> None:
        self.admitted: frozenset[int] = frozenset()
        self.refused: frozenset[int] = frozenset()
        # People who were in before. Whoever drops what they have waiting also empties it.
        self.removed: set[int] = set()
        self._client = store.client
        self._key = store.keys.access
        self._version: bytes | None = None

    async def refresh(self) -> None:
        """Read the ids if they have changed; else it is one round trip. Raise `StoreError`."""
        key = self._key
        while (version := await self._client.call("GET", key("version"))) != self._version:
            known = self._version
            admitted, refused = await self._client.pipeline(
                [("HKEYS", key("admitted")), ("HKEYS", key("refused"))]
            )
            if self._version != known:
                continue  # Another call has read the list meanwhile; these ids may be older.
            admitted = frozenset(map(int, admitted))
            self.removed |= self.admitted - admitted
            self.admitted, self.refused = admitted, frozenset(map(int, refused))
            self._version = version
            return


MAX_WAIT_S = 20.0
"""No caller waits longer: a permit that would take longer is not taken."""

_NEVER_MS = -1
_MAX_WAIT_MS = int(MAX_WAIT_S * 1000)


@dataclass(frozen=True, slots=True)
class Rate:
    """`at_once` permits at once, and one more after each `every_s` seconds."""

    at_once: int
    every_s: float

    @property
    def in_ms(self) -> dict[str, int]:
        """What scripts take; `take_permit` explains each of them."""
        every_ms = ceil(self.every_s * 1000)
        burst_ms = (self.at_once - 1) * every_ms
        return {
            "every_ms": every_ms,
            "burst_ms": burst_ms,
            "max_ms": burst_ms + every_ms + _MAX_WAIT_MS,
        }


@dataclass(frozen=True, slots=True)
class Permit:
    """Whether a permit was taken, how long to wait for it, and how long the chat is banned."""

    is_taken: bool
    wait_s: float
    ban_s: float


class SendRates:
    """How fast messages may be sent to each chat.

    The generic cell rate algorithm (ITU-T I.371): the remaining time of one small key says how many
    permits are taken, and it expires when the chat was quiet for long enough. Time is the server's.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def take(
        self, chat_id: int, rate: Rate, max_wait_ms: int | None = _MAX_WAIT_MS, spare: int = 0
    ) -> Permit:
        """Take a permit, even one that is still to come; none if the wait would be too long.

        If `max_wait_ms` is None, the message does not wait; then none while the chat is banned.
        `spare` permits stay free.
        """
        request = {"spare": spare, **rate.in_ms}
        if max_wait_ms is not None:
            request["max_wait_ms"] = max_wait_ms
        keys, take = [self._store.keys.send_rate(chat_id)], self._store.scripts["take_permit"]
        taken, wait_ms, ban_ms = await take(keys, request)
        return Permit(taken == 1, wait_ms / 1000, ban_ms / 1000)

    async def take_spare(self, chat_id: int, rate: Rate) -> bool:
        """Take a permit if there is one now and another one stays free; return whether."""
        if rate.at_once > 1:  # a quiet chat has no key
            every_ms, key = rate.in_ms["every_ms"], self._store.keys.send_rate(chat_id)
            with suppress(StoreFull):  # the script finds room
                if await self._store.client.call("SET", key, "", "PX", every_ms, "NX"):
                    return True
        return (await self.take(chat_id, rate, 0, spare=1)).is_taken

    async def ban_s(self, chat_id: int, rate: Rate) -> float:
        """Return for how many seconds nothing may be sent."""
        return (await self.take(chat_id, rate, _NEVER_MS)).ban_s

    async def ban(self, chat_id: int, rate: Rate, for_s: float) -> None:
        """Give no permits for so long, and one at a time afterwards; permits taken are void."""
        request = {"ban_ms": ceil(for_s * 1000), **rate.in_ms}
        await self._store.scripts["ban_chat"]([self._store.keys.send_rate(chat_id)], request)
