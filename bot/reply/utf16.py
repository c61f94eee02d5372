"""Text as Telegram counts it: in UTF-16 units, where an emoji is two.

Entities are positions in units, so a text and its entities are edited together.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from bot.reply.parts import Entity


def well_formed(text: str) -> str:
    """Replace each lone surrogate by U+FFFD, because no JSON or UTF-8 writer accepts one.

    The length in UTF-16 units stays the same, so the offsets of entities stay valid.
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def utf16_length(text: str) -> int:
    """Return the length of well-formed text in UTF-16 units."""
    return len(text.encode("utf-16-le")) // 2


def utf16_slice(text: str, start: int, end: int | None = None) -> str:
    """Cut well-formed text by UTF-16 offsets; half an emoji becomes U+FFFD."""
    units = text.encode("utf-16-le")
    return units[2 * start : None if end is None else 2 * end].decode("utf-16-le", "replace")


def text_of(units: bytes, entity: Entity) -> str:
    """Return the text of an entity; `units` is the whole text in UTF-16-LE.

    Encoding the text once for all its entities keeps their cost linear.
    """
    return units[2 * entity.offset : 2 * entity.end].decode("utf-16-le")


@dataclass(frozen=True, slots=True)
class Edit:
    """The text that replaces the UTF-16 units from `start` to `end`."""

    start: int
    end: int
    text: str


def edited(
    text: str, entities: Iterable[Entity], edits: Sequence[Edit]
) -> tuple[str, list[Entity]]:
    """Return text and entities after `edits`, which are in order and do not overlap.

    An entity that ends where an edit ends covers the whole replacement.
    """
    if not edits:
        return text, list(entities)
    units = text.encode("utf-16-le")
    pieces, at = [], 0
    for edit in edits:
        pieces += [units[2 * at : 2 * edit.start], edit.text.encode("utf-16-le")]
        at = edit.end
    ends = [edit.end for edit in edits]
    grown = (utf16_length(edit.text) - (edit.end - edit.start) for edit in edits)
    growth = [0, *accumulate(grown)]

    def moved(entity: Entity) -> Entity:
        start = entity.offset + growth[bisect_right(ends, entity.offset)]
        end = entity.end + growth[bisect_right(ends, entity.end)]
        return replace(entity, offset=start, length=end - start)

    return b"".join((*pieces, units[2 * at :])).decode("utf-16-le"), list(map(moved, entities))


def shortened(text: str, max_units: int) -> str:
    """Return the first UTF-16 units of a text; "…" follows if there are more."""
    head = utf16_slice(text, 0, max_units)
    return text if head == text else f"{head.rstrip('�')}…"
