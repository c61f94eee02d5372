"""Stretches of a text replaced, and its entities moved along."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from bot.reply.parts import Entity


@dataclass(frozen=True, slots=True)
class Edit:
    """What replaces the UTF-16 units from `start` to `end`."""

    start: int
    end: int
    text: str


def text_of(units: bytes, start: int, end: int) -> str:
    """Return a stretch of UTF-16-LE text; `start` and `end` count units."""
    return units[2 * start : 2 * end].decode("utf-16-le")


def edited(
    text: str, entities: Iterable[Entity], edits: Sequence[Edit]
) -> tuple[str, list[Entity]]:
    """Return text and entities after `edits`, which are in order and do not overlap.

    An entity that ends where an edit ends keeps the whole of it.
    """
    if not edits:
        return text, list(entities)
    units = text.encode("utf-16-le")
    pieces, at = [], 0
    for edit in edits:
        pieces += [units[2 * at : 2 * edit.start], edit.text.encode("utf-16-le")]
        at = edit.end
    ends = [edit.end for edit in edits]
    growth = [0, *accumulate(_growth(edit) for edit in edits)]

    def moved(entity: Entity) -> Entity:
        start = entity.offset + growth[bisect_right(ends, entity.offset)]
        end = entity.end + growth[bisect_right(ends, entity.end)]
        return replace(entity, offset=start, length=end - start)

    return b"".join((*pieces, units[2 * at :])).decode("utf-16-le"), list(map(moved, entities))


def _growth(edit: Edit) -> int:
    return len(edit.text.encode("utf-16-le")) // 2 - (edit.end - edit.start)
