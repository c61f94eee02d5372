"""A stored message as one entry of a prompt: named, marked, with further lines indented."""

from datetime import datetime, tzinfo

from memory.message import Message
from memory.text.dates import calendar_day
from memory.text.speakers import NAMELESS, Speakers, speaker_name
from memory.text.untrusted_text import UNTRUSTED_MARK

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
