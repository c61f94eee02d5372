"""What was dropped in all, and what admins have been told: once for each crossing, at most daily.

Under one lease, so that one process at a time tells. Telling itself is the caller's business.
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
    """How full the plan is, in the steps that matter."""

    ROOMY = 0
    CALM = 1
    FULL_SOON = 2
    FULL = 3


@dataclass(frozen=True, slots=True)
class News:
    """What admins do not know yet; `dropped` counts what they have not been told of."""

    kind: Literal["filling", "full", "dropped"]
    dropped: Dropped


class AlertLog:
    """The record of both, in one hash."""

    def __init__(self, store: Store) -> None:
        self._client = store.client
        self._key = store.keys.capacity
        self._script = store.scripts["note_capacity"]

    async def dropped(self) -> Dropped:
        """Return what was dropped since the beginning."""
        return _counts(await self._fields(), "")

    async def add(self, dropped: Dropped) -> None:
        """Count what was dropped."""
        if dropped != Dropped():
            given_up = {"lexical_only": 1} if dropped.vectors else {}
            await self._note(given_up, {"vectors": dropped.vectors, "messages": dropped.messages})

    async def gave_up_vectors(self) -> bool:
        """Say whether any conversation may be without vectors."""
        return bool(await self._client.call("HEXISTS", self._key, "lexical_only"))

    async def mark_embedded(self) -> None:
        """Note that all may be embedded again."""
        await self._client.call("HDEL", self._key, "lexical_only")

    async def untold(self, level: Level, now: float) -> list[News]:
        """Return what admins are to be told now; note that the level has fallen."""
        fields = await self._fields()
        known = int(fields.get("level", Level.CALM))
        kind = _KINDS.get(level)
        news: list[News] = []
        if level > known and kind is not None and _is_due(fields, kind, now):
            news.append(News(kind, Dropped()))
        elif level != known:
            await self._note({"level": int(level)})
        dropped, told = _counts(fields, ""), _counts(fields, "reported_")
        if dropped != told and _is_due(fields, "dropped", now):
            new = Dropped(dropped.vectors - told.vectors, dropped.messages - told.messages)
            news.append(News("dropped", new))
        return news

    async def mark(self, news: News, level: Level, now: float) -> None:
        """Note that admins know."""
        when = {f"reported:{news.kind}": int(now)}
        if news.kind == "dropped":
            told = {
                "reported_vectors": news.dropped.vectors,
                "reported_messages": news.dropped.messages,
            }
            await self._note(when, told)
        else:
            await self._note(when | {"level": int(level)})

    async def _note(self, values: Mapping[str, int], growth: Mapping[str, int] = _NONE) -> None:
        """Set some fields and let others grow, even where Redis is full."""
        await self._script([self._key], {"set": values, "grow": growth})

    async def _fields(self) -> dict[str, str]:
        stored: Mapping[bytes, bytes] = await self._client.call("HGETALL", self._key)
        return {name.decode(): value.decode() for name, value in stored.items()}


_KINDS: dict[Level, Literal["filling", "full"]] = {Level.FULL_SOON: "filling", Level.FULL: "full"}


def _is_due(fields: Mapping[str, str], kind: str, now: float) -> bool:
    return now - float(fields.get(f"reported:{kind}", 0)) >= _AGAIN_S


def _counts(fields: Mapping[str, str], prefix: str) -> Dropped:
    return Dropped(int(fields.get(f"{prefix}vectors", 0)), int(fields.get(f"{prefix}messages", 0)))
