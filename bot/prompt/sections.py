"""Turns stored messages into text of a prompt: made harmless, named, dated and joined.

All functions are pure. `assemble` decides how much of the text is sent.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import datetime, tzinfo
from itertools import groupby

from bot.model.call import PromptMessage
from memory.message import Message
from memory.search.message_search import SearchResult
from memory.text.dates import calendar_day, dated
from memory.text.speakers import NAMELESS, Speakers, speaker_name
from memory.text.untrusted_text import UNTRUSTED_MARK, harmless

_INDENT = "\n  "
"""Put before each further line of a text, so that only our own lines begin with a speaker."""


def spoken(message: Message, speakers: Speakers | None, zone: tzinfo) -> str:
    """Return the text of a message as the window shows it.

    With `speakers`, as in groups, the text follows the person's name. A forwarded text follows the
    name of who wrote it. Further lines are then indented, so that no text can look like another
    person's message or leave its place.
    """
    text = harmless(message.text)
    if message.role == "assistant" or not text.strip():
        return text
    text = f"{_unseen(message)}{text}"
    origin = _origin(message, zone)
    if speakers is not None:
        origin = f" ({origin})" if origin else ""
        return f"{speakers.label(message)}{origin}: {_indented(text)}"
    return f"{origin[0].upper()}{origin[1:]}: {_indented(text)}" if origin else text


def alternating(messages: Iterable[Message]) -> list[PromptMessage]:
    """Join neighboring messages of the same role, so that roles alternate."""
    return [
        PromptMessage(role, "\n\n".join(message.text for message in group))
        for role, group in groupby(messages, key=lambda message: message.role)
    ]


def memory_line(
    message: Message, excerpt: str, now: float, zone: tzinfo, speakers: Speakers | None
) -> str:
    """Return one recalled message with its date and speaker; further lines are indented.

    Untrusted text is marked. The caller has made `excerpt` harmless.
    """
    speaker = (speakers or Speakers()).label(message)
    if origin := _origin(message, zone):
        speaker += f" ({origin})"
    mark = "" if message.is_first_party else f" {UNTRUSTED_MARK}"
    text = _indented(f"{_unseen(message)}{excerpt}")
    return f"[{dated(message.sent_at, now, zone)}] {speaker}: {text}{mark}"


def codes_of(found: Iterable[SearchResult], shown: Container[int]) -> Iterator[str]:
    """Yield the codes of recalled messages for `CallContext.used`; `shown` has their sequences."""
    for result in found:
        mark = "" if result.lexical >= result.dense else "~"
        yield from (f"m{each.seq}{mark}" for each in result.messages if each.seq in shown)


def memory_section(lines: Sequence[str]) -> str:
    """Return the memory section of the last user message."""
    return "\n".join(("<memory>", *lines, "</memory>"))


def _origin(message: Message, zone: tzinfo) -> str:
    """Return who wrote a forwarded message and on what day; "" if it was not forwarded."""
    if not message.forwarded_from:
        return ""
    author = speaker_name(message.forwarded_from) or NAMELESS
    day = datetime.fromtimestamp(message.forwarded_at, zone).date()
    return f"forwarded from {author}, {calendar_day(day)}"


def _unseen(message: Message) -> str:
    """Return a note on what came with a text; it stands on the same line."""
    if not message.unseen:
        return ""
    kinds = message.unseen.replace("_", " ")
    return f"[attached {kinds}: you cannot see or hear it] "


def _indented(text: str) -> str:
    return _INDENT.join(text.splitlines())
