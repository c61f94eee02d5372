"""Bells: which conversations (or jobs) want attention, heard by exactly one worker at a time.

One stream with one consumer group. A bell stays pending with its worker until acknowledged; a dead
worker's bells are reclaimed. Bells carry a name only; what they stand for is in the mailbox.
"""

from dataclasses import dataclass
from secrets import token_hex

from memory.store.client import RedisClient
from memory.store.errors import StoreRefused
from memory.store.scripts import Scripts

GROUP = "workers"
_RETIRED_AFTER_MS = 3600 * 1000


@dataclass(frozen=True, slots=True)
class WakeUp:
    """One ring; `deliveries` tells whether it is still the same delivery when acknowledged.

    `gathers`: it rang for a message that is not answered at once, because more may follow it.
    """

    entry: bytes
    tag: str
    deliveries: int
    gathers: bool = False

    @property
    def delivery(self) -> str:
        """What names this ring in these hands: once reclaimed, it is another delivery."""
        return f"{self.entry.decode()}|{self.deliveries}"

    @property
    def woken_at(self) -> float:
        """When it rang, in Unix seconds by the server's clock."""
        return int(self.entry.partition(b"-")[0]) / 1000


class ReadyQueue:
    """One worker's ear at a stream of bells; the consumer name is unique per start."""

    def __init__(self, client: RedisClient, scripts: Scripts, stream: str) -> None:
        self._client = client
        self._scripts = scripts
        self._stream = stream
        self._consumer = token_hex(8)

    async def read(self, most: int, block_ms: int) -> list[WakeUp]:
        """Wait up to `block_ms` for new bells and return at most `most`."""
        try:
            answer = await self._client.call(
                *("XREADGROUP", "GROUP", GROUP, self._consumer, "COUNT", most),
                *("BLOCK", block_ms, "STREAMS", self._stream, ">"),
            )
        except StoreRefused as error:
            if "NOGROUP" not in str(error):
                raise
            await self._create_group()
            return []
        entries = answer[0][1] if answer else []
        return [
            WakeUp(entry, fields[b"c"].decode(), 1, b"g" in fields)
            for entry, fields in entries
            if fields
        ]

    async def reclaim(self, most: int, idle_ms: int) -> list[WakeUp]:
        """Take over bells whose worker has been silent for `idle_ms`."""
        try:
            arguments = (GROUP, self._consumer, idle_ms, most)
            answer = await self._scripts["reclaim"]([self._stream], arguments)
        except StoreRefused as error:
            if "NOGROUP" not in str(error):
                raise
            await self._create_group()
            return []
        return [WakeUp(entry, tag.decode(), count) for entry, tag, count in answer]

    async def renew(self, wake_up: WakeUp) -> bool:
        """Keep a bell from being reclaimed; false when it is no longer ours."""
        arguments = (GROUP, self._consumer, wake_up.entry)
        return bool(await self._scripts["renew_bell"]([self._stream], arguments))

    async def postpone(self, wake_up: WakeUp, wait_ms: int, idle_ms: int) -> None:
        """Have a bell taken over in `wait_ms` by whoever reclaims those silent for `idle_ms`.

        Never later than those: it then rings too soon.
        """
        silent_ms = max(0, idle_ms - wait_ms)
        await self._client.call(
            *("XCLAIM", self._stream, GROUP, self._consumer, 0, wake_up.entry),
            *("IDLE", silent_ms),
        )

    async def acknowledge(self, wake_up: WakeUp) -> None:
        """Remove a bell, unless somebody else has it by now."""
        await self._remove(wake_up, "")

    async def leave_to(self, wake_up: WakeUp, delivery: str) -> None:
        """Remove a bell only if another one is still in the hands of that delivery."""
        if delivery:
            await self._remove(wake_up, delivery)

    async def listeners(self, within_ms: int) -> int:
        """Return how many workers have listened, or kept a bell, within this time."""
        arguments = (GROUP, within_ms)
        return int(await self._scripts["listeners"]([self._stream], arguments))

    async def retire_consumers(self) -> int:
        """Remove consumers of processes that are long gone and hold nothing; return how many."""
        return int(await self._scripts["retire"]([self._stream], (GROUP, _RETIRED_AFTER_MS)))

    async def _remove(self, wake_up: WakeUp, other: str) -> None:
        arguments = (GROUP, self._consumer, wake_up.entry, wake_up.deliveries, other)
        await self._scripts["ack"]([self._stream], arguments)

    async def _create_group(self) -> None:
        # From the very beginning, so that bells rung before the group existed are heard.
        try:
            await self._client.call("XGROUP CREATE", self._stream, GROUP, "0", "MKSTREAM")
        except StoreRefused as error:
            if "BUSYGROUP" not in str(error):
                raise
