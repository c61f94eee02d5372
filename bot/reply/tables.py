"""Tables that fit a phone: the parser pads each cell to its column's widest, whatever that costs.

A table wider than a screen loses the padding, which a phone would wrap into blank lines.
"""

import re
from collections.abc import Collection, Iterable

from bot.reply.edits import Edit, edited, text_of
from bot.reply.parts import Entity

_WIDEST = 64  # characters of the longest line; a phone shows some forty
_DASHES = re.compile("-+")
_SPACES = re.compile(" +")


def narrowed(
    text: str, entities: Iterable[Entity], fences: Collection[int]
) -> tuple[str, list[Entity]]:
    """Return text and entities without the padding of wide tables.

    A table is a `pre` that begins at none of `fences`, which are UTF-16 offsets.
    """
    units, shown = text.encode("utf-16-le"), list(entities)
    edits = []
    for table in shown:
        if table.type == "pre" and table.offset not in fences:
            rows = text_of(units, table.offset, table.end).split("\n")
            if max(map(len, rows)) > _WIDEST:
                edits.append(Edit(table.offset, table.end, "\n".join(map(_unpadded, rows))))
    return edited(text, shown, edits)


def _unpadded(row: str) -> str:
    rule = not row.strip("-+")
    return _DASHES.sub("---", row) if rule else _SPACES.sub(" ", row).rstrip()
