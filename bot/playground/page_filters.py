"""What the templates call: entities as HTML, dates, initials."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

from markupsafe import Markup, escape

from bot.reply.parts import Entity
from memory.text.message_lines import dated
from memory.work.item import WorkItem

_WORD = re.compile(r"\w+")
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


def to_html(text: str, entities: Sequence[Entity]) -> Markup:
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


def _wrapped(piece: str, start: int, end: int, entities: Sequence[Entity]) -> Markup:
    html = escape(piece)
    covering = [e for e in entities if e.offset <= start and end <= e.offset + e.length]
    for entity in reversed(covering):
        if entity.type == "text_link":
            html = Markup('<a href="{}" rel="noreferrer">{}</a>').format(entity.url, html)
        else:
            html = Markup("<{0}>{1}</{0}>").format(Markup(_TAGS[entity.type]), html)  # noqa: S704 - our own word
        if entity.type == "pre":
            html += Markup('<button type="button" class="copy">Copy</button>')
    return html


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%H:%M")


def _day(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%-d %B %Y")


def _dated(at: float) -> str:
    """Return the day and how long ago it was."""
    return dated(at, time.time(), datetime.now().astimezone().tzinfo or UTC)


def _local_time(item: WorkItem) -> str:
    """Return when an item is due in the person's zone."""
    zone = ZoneInfo(item.zone) if item.zone else UTC
    return f"{datetime.fromtimestamp(item.due, zone):%A, %-d %B %Y, %H:%M}"


def _initials(name: str) -> str:
    """Return the first letters of the first and the last word of a name."""
    words = _WORD.findall(name)
    return "".join(word[0] for word in dict.fromkeys(words[:1] + words[-1:])).upper()


def _short(at: float) -> str:
    """Return the clock of today, the day of another time."""
    return _clock(at) if _day(at) == _day(time.time()) else _day(at).rsplit(" ", 1)[0]


FILTERS: Mapping[str, Callable[..., str]] = {
    "clock": _clock,
    "day": _day,
    "dated": _dated,
    "initials": _initials,
    "local_time": _local_time,
    "short": _short,
}
