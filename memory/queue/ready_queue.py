"""The ready queue: wake-ups that say which conversations (or jobs) have work.

It is one stream with one consumer group. A wake-up stays pending with one worker until that
worker acknowledges it. If the worker dies, another one reclaims the wake-up. A wake-up carries only
a name; the messages themselves are in the mailbox.
"""

from collections.abc import Awaitable
from dataclasses import dataclass
from secrets import token_hex

from memory.store.client import RedisClient
from memory.store.commands import Reply, Request
from memory.store.errors import StoreRefused
from memory.store.keys import TAG_FIELD
from memory.store.store import Scripts

GROUP = "workers"

_REMOVE_AFTER_MS = 3600 * 1000


@dataclass(frozen=True, slots=True)
class WakeUp:
    """One delivery of a stream entry; `deliveries` counts how often the entry was delivered."""

    entry: bytes
    tag: str
    deliveries: int

    @property
    def delivery(self) -> str:
        """Name this delivery: when another worker reclaims the entry, that is another delivery."""
        return f"{self.entry.decode()}|{self.deliveries}"


class ReadyQueue:
    """One worker's access to a stream of wake-ups; its consumer name is new at each start."""

    def __init__(self, client: RedisClient, scripts: Scripts, stream: str) -> None:
        self._client = client
        self._scripts = scripts
        self._stream = stream
        self._consumer = token_hex(8)

    async def read(self, max_wake_ups: int, block_ms: int) -> list[WakeUp]:
        """Wait up to `block_ms` for new wake-ups; return at most `max_wake_ups`, oldest first."""
        answer = await self._with_group(
            self._client.call(
                *("XREADGROUP", "GROUP", GROUP, self._consumer, "COUNT", max_wake_ups),
                *("BLOCK", block_ms, "STREAMS", self._stream, ">"),
            )
        )
        entries = answer[0][1] if answer else []
        return [
            WakeUp(entry, fields[TAG_FIELD.encode()].decode(), 1)
            for entry, fields in entries
            if fields
        ]

    async def reclaim(self, max_wake_ups: int, idle_ms: int) -> list[WakeUp]:
        """Take over wake-ups that no worker has renewed for `idle_ms`."""
        request = {"idle_ms": idle_ms, "max_wake_ups": max_wake_ups}
        answer = await self._with_group(self._run("reclaim", request))
        return [WakeUp(entry, tag.decode(), count) for entry, tag, count in answer or []]

    async def renew(self, wake_up: WakeUp) -> bool:
        """Keep a wake-up from being reclaimed; false if another worker has it."""
        return bool(await self._run("renew_wake_up", {"entry": wake_up.entry.decode()}))

    async def postpone(self, wake_up: WakeUp, wait_ms: int, idle_ms: int) -> None:
        """Let a wake-up be reclaimed after `wait_ms` by workers that reclaim after `idle_ms`.

        If `wait_ms` is longer than `idle_ms`, it is reclaimed after `idle_ms`.
        """
        idle_already_ms = max(0, idle_ms - wait_ms)
        await self._client.call(
            *("XCLAIM", self._stream, GROUP, self._consumer, 0, wake_up.entry),
            *("IDLE", idle_already_ms),
        )

    async def acknowledge(self, wake_up: WakeUp, if_pending: str | None = None) -> None:
        """Remove a wake-up, unless another worker has it now.

        With `if_pending`, another delivery for the same conversation, only if that is still
        pending; "" is none.
        """
        request: dict[str, object] = {
            "entry": wake_up.entry.decode(),
            "deliveries": wake_up.deliveries,
        }
        if if_pending is not None:
            request["other"] = if_pending
        await self._run("ack", request)

    async def count_consumers(self, within_ms: int) -> int:
        """Return how many workers have read or renewed a wake-up within this time."""
        return int(await self._run("count_consumers", {"within_ms": within_ms}))

    async def remove_consumers(self) -> int:
        """Remove consumers that were idle for an hour and have no wake-up; return how many."""
        return int(await self._run("remove_consumers", {"idle_ms": _REMOVE_AFTER_MS}))

    async def _run(self, script: str, request: Request) -> Reply:
        named = {"group": GROUP, "consumer": self._consumer, **request}
        return await self._scripts[script]([self._stream], named)

    async def _with_group(self, call: Awaitable[Reply]) -> Reply:
        """Return the reply of a call; if there is no consumer group, create it and return None.

        The group starts at the first entry, so that no earlier wake-up is missed.
        """
        try:
            return await call
        except StoreRefused as error:
            if "NOGROUP" not in str(error):
                raise
        try:
            await self._client.call("XGROUP CREATE", self._stream, GROUP, "0", "MKSTREAM")
        except StoreRefused as error:
            if "BUSYGROUP" not in str(error):
                raise
        return None
