"""Turns stored messages into text of a prompt: escaped, named, dated and joined.

All functions are pure. `assemble` decides how much of the text is sent.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import tzinfo
from itertools import groupby

from bot.model.call import PromptMessage
from memory.message import Message
from memory.search.message_search import SearchResult
from memory.text.message_lines import indented, origin_of, unseen_note
from memory.text.speakers import Speakers
from memory.text.untrusted_text import escaped


def spoken(message: Message, speakers: Speakers | None, zone: tzinfo) -> str:
    """Return the text of a message as the window shows it.

    With `speakers`, as in groups, the text follows the person's name. A forwarded text follows the
    name of who wrote it. Further lines are then indented, so that no text can look like another
    person's message or leave its place.
    """
    text = escaped(message.text)
    if message.role == "assistant" or not text.strip():
        return text
    text = f"{unseen_note(message)}{text}"
    origin = origin_of(message, zone)
    if speakers is not None:
        origin = f" ({origin})" if origin else ""
        return f"{speakers.label(message)}{origin}: {indented(text)}"
    return f"{origin[0].upper()}{origin[1:]}: {indented(text)}" if origin else text


def alternating(messages: Iterable[Message]) -> list[PromptMessage]:
    """Join neighboring messages of the same role, so that roles alternate."""
    return [
        PromptMessage(role, "\n\n".join(message.text for message in group))
        for role, group in groupby(messages, key=lambda message: message.role)
    ]


def codes_of(found: Iterable[SearchResult], shown: Container[int]) -> Iterator[str]:
    """Yield the codes of recalled messages for `CallContext.used`; `shown` has their sequences."""
    for result in found:
        mark = "" if result.lexical >= result.dense else "~"
        yield from (f"m{each.seq}{mark}" for each in result.messages if each.seq in shown)


def memory_section(lines: Sequence[str]) -> str:
    """Return the memory section of the last user message."""
    return "\n".join(("<memory>", *lines, "</memory>"))
