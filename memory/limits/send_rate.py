"""How fast messages may be sent to each chat, for all processes together.

The generic cell rate algorithm (ITU-T I.371): the remaining time of one small key says how many
permits are taken, and it expires when the chat was quiet for long enough. Time is the server's.
"""

from contextlib import suppress
from dataclasses import dataclass
from math import ceil

from memory.store.errors import StoreFull
from memory.store.store import Store

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
    """The send rates of all chats."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def take(self, chat_id: int, rate: Rate) -> Permit:
        """Take a permit, even one that is still to come; none if the wait would be too long."""
        return await self._take(chat_id, rate, _MAX_WAIT_MS)

    async def take_spare(self, chat_id: int, rate: Rate) -> bool:
        """Take a permit if there is one now and another one stays free; return whether."""
        if rate.at_once > 1:  # a quiet chat has no key
            every_ms, key = rate.in_ms["every_ms"], self._store.keys.send_rate(chat_id)
            with suppress(StoreFull):  # the script finds room
                if await self._store.client.call("SET", key, "", "PX", every_ms, "NX"):
                    return True
        return (await self._take(chat_id, rate, 0, spare=1)).is_taken

    async def count(self, chat_id: int, rate: Rate) -> Permit:
        """Take a permit for a message that does not wait; none while the chat is banned."""
        return await self._take(chat_id, rate, None)

    async def ban_s(self, chat_id: int, rate: Rate) -> float:
        """Return for how many seconds nothing may be sent."""
        return (await self._take(chat_id, rate, _NEVER_MS)).ban_s

    async def ban(self, chat_id: int, rate: Rate, for_s: float) -> None:
        """Give no permits for so long, and one at a time afterwards; permits taken are void."""
        request = {"ban_ms": ceil(for_s * 1000), **rate.in_ms}
        await self._store.scripts["ban_chat"]([self._store.keys.send_rate(chat_id)], request)

    async def _take(
        self, chat_id: int, rate: Rate, max_wait_ms: int | None, spare: int = 0
    ) -> Permit:
        request = {"spare": spare, **rate.in_ms}
        if max_wait_ms is not None:
            request["max_wait_ms"] = max_wait_ms
        keys, take = [self._store.keys.send_rate(chat_id)], self._store.scripts["take_permit"]
        taken, wait_ms, ban_ms = await take(keys, request)
        return Permit(taken == 1, wait_ms / 1000, ban_ms / 1000)
