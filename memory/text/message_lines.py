"""A stored message as one entry of a prompt, and the names of its speakers.

People choose their names, so a name must not be able to imitate a line or a label of the prompt.
"""

import re
from calendar import monthrange
from collections import Counter
from collections.abc import Iterable
from datetime import date, datetime, tzinfo

from memory.message import Message
from memory.text.untrusted_text import UNTRUSTED_MARK, escaped, letters

ASSISTANT = "You (assistant)"
NAMELESS = "User"

_MAX_CHARS = 64
# A colon ends the name of a speaker in the prompt; all of these look like one.
_COLONS = re.compile("[:\uff1a\ufe55\ufe13\u2236\ua789\u02d0\u05c3\u0589]")
_OURS = frozenset(("you", "assistant", "theassistant"))
_OUR_LABEL = "youassistant"


def speaker_name(name: str) -> str:
    """Return a name on one line without colons; "" if it is empty or imitates the assistant."""
    shown = " ".join(_COLONS.sub(" ", escaped(name)).split())[:_MAX_CHARS].rstrip()
    compared = "".join(filter(str.isalnum, letters(shown)))
    return "" if compared in _OURS or _OUR_LABEL in compared else shown


class Speakers:
    """The people of one conversation, each under a unique label.

    `messages` must be in the order of time. The first person with a name gets the plain name, later
    ones a number after it. So labels do not change from turn to turn.
    """

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._labels: dict[tuple[int, str], str] = {}
        self._taken: set[str] = set()
        self._numbered = Counter[str]()  # how many numbers were tried, by name
        for message in messages:
            self.label(message)

    def label(self, message: Message) -> str:
        """Return the label of the sender of a message."""
        if message.role == "assistant":
            return ASSISTANT
        sender = (message.sender_id, message.sender_name)
        if sender not in self._labels:
            label = name = speaker_name(message.sender_name) or NAMELESS
            base = _alike(name)
            while (alike := _alike(label)) in self._taken:
                self._numbered[base] += 1  # all numbers up to this are taken
                label = f"{name} ({self._numbered[base] + 1})"
            self._taken.add(alike)
            self._labels[sender] = label
        return self._labels[sender]


def _alike(label: str) -> str:
    return "".join(letters(label)).replace(" ", "")


_INDENT = "\n  "
"""Put before each further line of a text, so that only our own lines begin with a speaker."""


def memory_line(
    message: Message, excerpt: str, zone: tzinfo, speakers: Speakers | None = None
) -> str:
    """Return one recalled message with its speaker; further lines are indented.

    The caller puts the date in front, and the place if there are several, so that no line begins
    with a speaker's name. Untrusted text is marked. The caller has escaped `excerpt`.
    """
    speaker = (speakers or Speakers()).label(message)
    if origin := origin_of(message, zone):
        speaker += f" ({origin})"
    mark = "" if message.is_first_party else f" {UNTRUSTED_MARK}"
    text = indented(f"{unseen_note(message)}{excerpt}")
    return f"{speaker}: {text}{mark}"


def origin_of(message: Message, zone: tzinfo) -> str:
    """Return who wrote a forwarded message and on what day; "" if it was not forwarded."""
    if not message.forwarded_from:
        return ""
    author = speaker_name(message.forwarded_from) or NAMELESS
    day = datetime.fromtimestamp(message.forwarded_at, zone).date()
    return f"forwarded from {author}, {calendar_day(day)}"


def unseen_note(message: Message) -> str:
    """Return a note on what came with a text; it stands on the same line."""
    if not message.unseen:
        return ""
    kinds = message.unseen.replace("_", " ")
    return f"[attached {kinds}: you cannot see or hear it] "


def indented(text: str) -> str:
    """Return a text whose further lines are indented."""
    return _INDENT.join(text.splitlines())


# `calendar.month_name` would depend on the locale of the process.
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip

_ISO = re.compile(r"[12]\d{3}(?:-\d\d){0,2}")
_DAYS_PER_MONTH = 365.2425 / 12


def dated(sent_at: float, now: float, zone: tzinfo) -> str:
    """Return when `sent_at` was, seen from `now` (both in Unix seconds), in the time of `zone`.

    "today, 14:05", "yesterday, 14:05", then "12 March 2025, 8 months ago". A later day (because a
    clock was wrong) is given by its date alone.
    """
    said = datetime.fromtimestamp(sent_at, zone)
    days = (datetime.fromtimestamp(now, zone).date() - said.date()).days
    if days in (0, 1):
        return f"{('today', 'yesterday')[days]}, {said:%H:%M}"
    day, months = calendar_day(said.date()), round(days / _DAYS_PER_MONTH)
    if days < 0:
        return day
    if days < 14:
        return f"{day}, {days} days ago"
    if months < 2:
        return f"{day}, {days // 7} weeks ago"
    return f"{day}, {months} months ago" if months < 24 else f"{day}, {months // 12} years ago"


def days_of(iso: str) -> tuple[date, date] | None:
    """Return the first and the last day of "2026-03-12", "2026-03" or "2026"; None for others."""
    if not _ISO.fullmatch(iso):
        return None
    year, month, day = (*map(int, iso.split("-")), 0, 0)[:3]
    try:
        first, last = date(year, month or 1, day or 1), month or 12
        return first, date(year, last, day or monthrange(year, last)[1])
    except ValueError:
        return None


def written_day(iso: str) -> str:
    """Return an ISO date as in "12 March 2026", "March 2026" or "2026"."""
    year, *rest = iso.split("-")
    names = [_MONTHS[int(rest[0]) - 1]] if rest else []
    return " ".join((*(str(int(day)) for day in rest[1:]), *names, year))


def calendar_day(day: date) -> str:
    """Return a day as in "12 March 2025"."""
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"
