"""How other people's words become text of a prompt: made harmless, named, dated, joined.

Pure text; what of it is sent, and how much, is `prompt`'s business.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import tzinfo
from itertools import groupby

from bot.model.values import PromptMessage
from memory.dates import dated
from memory.messages import Message

# What a reader does not see, and so might be put into a faked tag.
_GAP = r"[\s\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]*+"

# A "<" that ends a text counts too: whatever is joined to it could complete the tag.
_TAG = re.compile(rf"<(?={_GAP}/?+{_GAP}(?:memory\b|\Z))", re.IGNORECASE)

_NAME_CHARS = 64


def harmless(text: str) -> str:
    """Escape the memory section's tag, in any case and spacing, and replace lone surrogates.

    So nobody fakes a section, and the text can be sent as UTF-8.
    """
    return _TAG.sub("&lt;", _paired(text))


def harmless_json(text: str) -> str:
    """Do the same to JSON text, which keeps its meaning."""
    return _TAG.sub(r"\\u003c", _paired(text))


def spoken(message: Message, *, named: bool) -> str:
    """Return a message's words as the dialogue shows them, behind the sender's name if `named`."""
    name = _name(message)
    words = harmless(message.text)
    return f"{name}: {words}" if named and name and message.role == "user" else words


def alternating(messages: Iterable[Message]) -> list[PromptMessage]:
    """Join neighbours of the same role, so that roles take turns."""
    return [
        PromptMessage(role, "\n\n".join(message.text for message in group))
        for role, group in groupby(messages, key=lambda message: message.role)
    ]


def memory_line(message: Message, excerpt: str, now: float, zone: tzinfo) -> str:
    """Return one remembered message with date and speaker; further lines of `excerpt` are indented.

    The indent tells them from the next remembered message. `excerpt` has to be harmless already.
    """
    speaker = "You (assistant)" if message.role == "assistant" else _name(message) or "User"
    words = "\n  ".join(excerpt.splitlines())
    return f"[{dated(message.sent_at, now, zone)}] {speaker}: {words}"


def memory_section(lines: Sequence[str]) -> str:
    """Return the section of the last user message that holds what was recalled."""
    return "\n".join(("<memory>", *lines, "</memory>"))


def _paired(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _name(message: Message) -> str:
    """Return the sender's name on one line; people choose it themselves, so it is cut short."""
    return harmless(" ".join(message.sender_name.split())[:_NAME_CHARS])
