"""Tables that fit a phone: the parser pads each cell to its column's widest, whatever that costs.

A table wider than a screen loses the padding, which a phone would wrap into blank lines.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import replace

from bot.reply.parts import Entity

_WIDEST = 64  # characters of the longest line; a phone shows some forty


def narrowed(
    text: str, entities: Iterable[Entity], fences: Collection[int]
) -> tuple[str, list[Entity]]:
    """Return text and entities without the padding of wide tables.

    A table is a `pre` that begins at none of `fences`, which are UTF-16 offsets.
    """
    units, shown = text.encode("utf-16-le"), list(entities)
    tables = [one for one in shown if one.type == "pre" and one.offset not in fences]
    for table in reversed(tables):  # the offsets of those before it stay true
        before, after = units[: 2 * table.offset], units[2 * table.end :]
        rows = units[2 * table.offset : 2 * table.end].decode("utf-16-le").split("\n")
        if max(map(len, rows)) > _WIDEST:
            units = before + "\n".join(map(_unpadded, rows)).encode("utf-16-le") + after
            saved = table.end - (len(units) - len(after)) // 2
            shown = [_moved(one, table, saved) for one in shown]
    return units.decode("utf-16-le"), shown


def _unpadded(row: str) -> str:
    rule = not row.strip("-+")
    return re.sub("-+", "---", row) if rule else re.sub(" +", " ", row).rstrip()


def _moved(entity: Entity, table: Entity, saved: int) -> Entity:
    if entity.offset >= table.end:
        return replace(entity, offset=entity.offset - saved)
    if entity.end >= table.end:
        return replace(entity, length=entity.length - saved)
    return entity
