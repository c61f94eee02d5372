"""Paces: how fast each chat is spoken to, by all processes together (scheduling of ITU-T I.371).

What a chat has taken is the life of one small key, which expires once the chat was silent for long
enough. Time is the server's.
"""

from dataclasses import dataclass
from math import ceil

from memory.store.store import Store

LONGEST_WAIT_S = 20.0
"""Nobody waits for longer: who is told so takes no place."""

_NEVER_MS = -1
_LONGEST_WAIT_MS = int(LONGEST_WAIT_S * 1000)


@dataclass(frozen=True, slots=True)
class Pace:
    """So many at once, and one more after each so many seconds."""

    at_once: int
    every_s: float

    @property
    def every_ms(self) -> int:
        """After how long a place comes back."""
        return ceil(self.every_s * 1000)

    @property
    def ahead_ms(self) -> int:
        """How far ahead of their time places may be taken."""
        return (self.at_once - 1) * self.every_ms

    @property
    def max_ms(self) -> int:
        """How long until every place is free again, at most."""
        return self.ahead_ms + self.every_ms + _LONGEST_WAIT_MS


@dataclass(frozen=True, slots=True)
class Place:
    """Whether a place was taken, when it comes, and for how long nothing may be sent at all."""

    is_taken: bool
    wait_s: float
    ban_s: float


class SendRates:
    """The measures of all chats."""

    def __init__(self, store: Store) -> None:
        self._keys = store.keys
        self._scripts = store.scripts

    async def take(self, chat_id: int, pace: Pace) -> Place:
        """Take a place, also one that is still to come; none where the wait would be too long."""
        return await self._ask(chat_id, pace, _LONGEST_WAIT_MS)

    async def take_spare(self, chat_id: int, pace: Pace) -> bool:
        """Take a place if there is one at once, and another for whoever comes next."""
        return (await self._ask(chat_id, pace, 0, spare=1)).is_taken

    async def count(self, chat_id: int, pace: Pace) -> Place:
        """Take a place for what does not wait; none while the chat is shut."""
        return await self._ask(chat_id, pace, None)

    async def ban_s(self, chat_id: int, pace: Pace) -> float:
        """Return for how long nothing may be sent at all."""
        return (await self._ask(chat_id, pace, _NEVER_MS)).ban_s

    async def shut(self, chat_id: int, pace: Pace, for_s: float) -> None:
        """Have no places for so long, and one at a time afterwards; those given away are void."""
        await self._scripts["ban_chat"](
            [self._keys.send_rate(chat_id)],
            {"ban_ms": ceil(for_s * 1000), "burst_ms": pace.ahead_ms, "max_ms": pace.max_ms},
        )

    async def _ask(self, chat_id: int, pace: Pace, longest_ms: int | None, spare: int = 0) -> Place:
        request = {
            "every_ms": pace.every_ms,
            "burst_ms": pace.ahead_ms,
            "max_ms": pace.max_ms,
            "spare": spare,
        }
        if longest_ms is not None:
            request["max_wait_ms"] = longest_ms
        taken, wait_ms, ban_ms = await self._scripts["take_permit"](
            [self._keys.send_rate(chat_id)], request
        )
        return Place(taken == 1, wait_ms / 1000, ban_ms / 1000)
