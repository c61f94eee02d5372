"""Turns stored messages into text of a prompt: made harmless, named, dated and joined.

All functions are pure. `assemble` decides how much of the text is sent.
"""

from collections.abc import Iterable, Sequence
from datetime import tzinfo
from itertools import groupby

from bot.model.call import PromptMessage
from memory.message import Message
from memory.text.dates import dated
from memory.text.speakers import Speakers
from memory.text.untrusted_text import UNTRUSTED_MARK, harmless

_INDENT = "\n  "
"""Put before each further line of a text, so that only our own lines begin with a speaker."""


def spoken(message: Message, speakers: Speakers | None) -> str:
    """Return the text of a message as the window shows it.

    With `speakers`, as in groups, the text follows the person's name and further lines are
    indented, so that no text can look like another person's message.
    """
    text = harmless(message.text)
    if speakers is None or message.role == "assistant" or not text.strip():
        return text
    return f"{speakers.label(message)}: {_indented(text)}"


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
    mark = "" if message.is_first_party else f" {UNTRUSTED_MARK}"
    return f"[{dated(message.sent_at, now, zone)}] {speaker}: {_indented(excerpt)}{mark}"


def memory_section(lines: Sequence[str]) -> str:
    """Return the memory section of the last user message."""
    return "\n".join(("<memory>", *lines, "</memory>"))


def _indented(text: str) -> str:
    return _INDENT.join(text.splitlines())
