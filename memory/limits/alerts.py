"""What admins are told about the capacity of Redis: each crossing once, at most once a day.

Counts what was dropped in all and what of it was reported, in one hash. Does not send anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

from memory.limits.dropping import Dropped
from memory.store.store import Store

_AGAIN_S = 86_400
_NONE: Mapping[str, int] = {}


class Level(IntEnum):
    """How full Redis is, in the steps that matter."""

    LOW = 0
    NORMAL = 1
    FULL_SOON = 2
    FULL = 3


@dataclass(frozen=True, slots=True)
class CapacityAlert:
    """What admins have to be told; `dropped` counts what was not reported yet."""

    kind: Literal["filling", "full", "dropped"]
    dropped: Dropped


_KINDS: dict[Level, Literal["filling", "full"]] = {Level.FULL_SOON: "filling", Level.FULL: "full"}


class AlertLog:
    """What was dropped, and what admins were told, for all processes."""

    def __init__(self, store: Store) -> None:
        self._client = store.client
        self._key = store.keys.capacity
        self._script = store.scripts["note_capacity"]

    async def dropped(self) -> Dropped:
        """Return what was dropped in all."""
        return _counts(await self._fields(), "")

    async def add(self, dropped: Dropped) -> None:
        """Count what was dropped."""
        if dropped != Dropped():
            without_vectors = {"lexical_only": 1} if dropped.vectors else {}
            counts = {"vectors": dropped.vectors, "messages": dropped.messages}
            await self._note(without_vectors, counts)

    async def has_dropped_vectors(self) -> bool:
        """Return whether any conversation may be without vectors."""
        return bool(await self._client.call("HEXISTS", self._key, "lexical_only"))

    async def mark_embedded(self) -> None:
        """Note that all conversations may be embedded again."""
        await self._client.call("HDEL", self._key, "lexical_only")

    async def due(self, level: Level, now: float) -> list[CapacityAlert]:
        """Return the alerts that admins must get now; `now` is in Unix seconds.

        If the level has fallen, notes that, so that the next crossing is reported again.
        """
        fields = await self._fields()
        noted_level = int(fields.get("level", Level.NORMAL))
        kind = _KINDS.get(level)
        alerts: list[CapacityAlert] = []
        if level > noted_level and kind is not None and _is_due(fields, kind, now):
            alerts.append(CapacityAlert(kind, Dropped()))
        elif level != noted_level:
            await self._note({"level": int(level)})
        dropped, reported = _counts(fields, ""), _counts(fields, "reported_")
        if dropped != reported and _is_due(fields, "dropped", now):
            vectors = dropped.vectors - reported.vectors
            messages = dropped.messages - reported.messages
            alerts.append(CapacityAlert("dropped", Dropped(vectors, messages)))
        return alerts

    async def mark_reported(self, alert: CapacityAlert, level: Level, now: float) -> None:
        """Note that admins got an alert."""
        reported = {f"reported:{alert.kind}": int(now)}
        if alert.kind == "dropped":
            dropped = alert.dropped
            counts = {"reported_vectors": dropped.vectors, "reported_messages": dropped.messages}
            await self._note(reported, counts)
        else:
            await self._note(reported | {"level": int(level)})

    async def _note(self, values: Mapping[str, int], growth: Mapping[str, int] = _NONE) -> None:
        """Set some fields and let others grow, even if Redis is full."""
        await self._script([self._key], {"set": values, "grow": growth})

    async def _fields(self) -> dict[str, str]:
        stored: Mapping[bytes, bytes] = await self._client.call("HGETALL", self._key)
        return {name.decode(): value.decode() for name, value in stored.items()}


def _is_due(fields: Mapping[str, str], kind: str, now: float) -> bool:
    return now - float(fields.get(f"reported:{kind}", 0)) >= _AGAIN_S


def _counts(fields: Mapping[str, str], prefix: str) -> Dropped:
    return Dropped(int(fields.get(f"{prefix}vectors", 0)), int(fields.get(f"{prefix}messages", 0)))
