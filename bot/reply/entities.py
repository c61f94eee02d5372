"""Makes entities legal: Telegram would repair or drop entities that break its nesting rules.

The rules (tdlib, MessageEntity.cpp): one entity contains another whole or not at all. None contains
its own type. `pre` and `code` contain nothing and stand in nothing but a quote. Links contain no
link and quotes no quote.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from bot.reply.parts import Entity

_CODE = frozenset({"pre", "code"})
_SOLID = _CODE | {"text_link", "date_time"}
_STYLES = ("bold", "italic", "strikethrough", "spoiler")


def legal(entities: Iterable[Entity]) -> tuple[Entity, ...]:
    """Return entities that may stand together, outer before inner, in order of offsets.

    Code wins over the styles around it, the outer link or quote over the inner one. Types that
    Markdown has no sign for (`underline` of the parser's headings, custom emoji) are left out.
    """
    ordered = sorted(entities, key=_outer_first)
    quotes = _without_overlap(entity for entity in ordered if entity.type == "blockquote")
    solid = _without_overlap(entity for entity in ordered if entity.type in _SOLID)
    codes = [entity for entity in solid if entity.type in _CODE]
    # No style within itself: nested a thousand deep around code, it would fill the memory.
    flat = (_without_overlap(one for one in ordered if one.type == style) for style in _STYLES)
    styles = [piece for entity in chain.from_iterable(flat) for piece in _around(entity, codes)]
    return tuple(_nested(sorted((*quotes, *solid, *styles), key=_outer_first)))


def _outer_first(entity: Entity) -> tuple[int, int, bool]:
    return entity.offset, -entity.length, entity.type in _CODE


def _without_overlap(ordered: Iterable[Entity]) -> list[Entity]:
    """Keep the first of the entities that cover the same text."""
    kept: list[Entity] = []
    for entity in ordered:
        if not kept or kept[-1].end <= entity.offset:
            kept.append(entity)
    return kept


def _around(style: Entity, codes: Sequence[Entity]) -> Iterator[Entity]:
    """Yield the pieces of a style before, between and after the code in it."""
    start = style.offset
    first = bisect_right(codes, start, key=lambda code: code.end)
    for code in codes[first : bisect_left(codes, style.end, key=lambda code: code.offset)]:
        if code.offset > start:
            yield replace(style, offset=start, length=code.offset - start)
        start = code.end
    if start < style.end:
        yield replace(style, offset=start, length=style.end - start)


def _nested(ordered: Iterable[Entity]) -> Iterator[Entity]:
    """Cut an entity off at the end of the one around it; leave out a style within itself."""
    open_now: list[Entity] = []
    for entity in ordered:
        open_now = [outer for outer in open_now if outer.end > entity.offset]
        if any(outer.type == entity.type for outer in open_now):
            continue
        end = min([entity.end, *(outer.end for outer in open_now)])
        whole = replace(entity, length=end - entity.offset)
        open_now.append(whole)
        yield whole
