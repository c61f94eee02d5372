"""What admins are told about the capacity of Redis: each crossing once, at most once a day.

Notes in one hash what they were told. Does not send anything.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Literal

from memory.store.store import Store

_AGAIN_S = 86_400


class Level(IntEnum):
    """How full Redis is, in the steps that matter."""

    NORMAL = 1
    FULL_SOON = 2
    FULL = 3


CapacityAlert = Literal["filling", "full"]
"""What admins have to be told."""

_KINDS: dict[Level, CapacityAlert] = {Level.FULL_SOON: "filling", Level.FULL: "full"}


class AlertLog:
    """What admins were told, for all processes."""

    def __init__(self, store: Store) -> None:
        self._client = store.client
        self._key = store.keys.capacity
        self._script = store.scripts["note_capacity"]

    async def due(self, level: Level, now: float) -> CapacityAlert | None:
        """Return the alert that admins must get now; `now` is in Unix seconds.

        If the level has fallen, notes that, so that the next crossing is reported again.
        """
        stored: Mapping[bytes, bytes] = await self._client.call("HGETALL", self._key)
        fields = {name.decode(): value.decode() for name, value in stored.items()}
        noted = int(fields.get("level", Level.NORMAL))
        kind = _KINDS.get(level)
        reported_at = float(fields.get(f"reported:{kind}", 0))
        if level > noted and kind is not None and now - reported_at >= _AGAIN_S:
            return kind
        if level != noted:
            await self._note({"level": int(level)})
        return None

    async def mark_reported(self, alert: CapacityAlert, level: Level, now: float) -> None:
        """Note that admins got an alert."""
        await self._note({f"reported:{alert}": int(now), "level": int(level)})

    async def _note(self, values: Mapping[str, int]) -> None:
        """Set some fields, even if Redis is full."""
        await self._script([self._key], values)
