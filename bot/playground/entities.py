"""Shows a message's entities as HTML, the way Telegram's apps show them."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

from markupsafe import Markup, escape

_TAGS = {
    "bold": "strong",
    "italic": "em",
    "underline": "u",
    "strikethrough": "s",
    "spoiler": "mark",
    "code": "code",
    "pre": "pre",
    "blockquote": "blockquote",
    "expandable_blockquote": "blockquote",
}


class Styled(Protocol):
    """A stretch of text; offsets and lengths count UTF-16 units."""

    @property
    def type(self) -> str:
        """Telegram's word."""
        ...

    @property
    def offset(self) -> int:
        """Where it begins."""
        ...

    @property
    def length(self) -> int:
        """How long it is."""
        ...

    @property
    def url(self) -> str:
        """Where a text link leads."""
        ...


def to_html(text: str, entities: Sequence[Styled]) -> Markup:
    """Return text and entities as escaped HTML; overlapping ones are closed and reopened."""
    units = text.encode("utf-16-le")
    shown = [entity for entity in entities if entity.type in _TAGS or entity.type == "text_link"]
    edges = sorted(
        {0, len(units) // 2}
        | {entity.offset for entity in shown}
        | {entity.offset + entity.length for entity in shown}
    )
    pieces = [
        _wrapped(units[2 * start : 2 * end].decode("utf-16-le"), start, end, shown)
        for start, end in pairwise(edges)
    ]
    return Markup("").join(pieces)


def _wrapped(piece: str, start: int, end: int, entities: Sequence[Styled]) -> Markup:
    html = escape(piece)
    covering = [e for e in entities if e.offset <= start and end <= e.offset + e.length]
    for entity in reversed(covering):
        if entity.type == "text_link":
            html = Markup('<a href="{}" rel="noreferrer">{}</a>').format(entity.url, html)
        else:
            html = Markup("<{0}>{1}</{0}>").format(Markup(_TAGS[entity.type]), html)  # noqa: S704 - our own word
    return html
