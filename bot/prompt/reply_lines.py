"""The lines of the memory section that show which message the person replies to."""

from collections.abc import Callable, Sequence
from datetime import tzinfo
from functools import partial

from memory.behaviors.context import AgentContext
from memory.message import Message, RepliedTo
from memory.text.dates import dated
from memory.text.message_lines import memory_line
from memory.text.tokens import TokenCounter
from memory.text.untrusted_text import escaped

_OPEN, _CLOSE = "⟦", "⟧"
"""Around the part that the person marked; people's own texts lose these characters here."""
_HINT_TOKENS = 24
"""For a message that the window shows: enough to say which one is meant."""
_UNKNOWN = "(its words are not known to you)"


def reply_lines(
    counter: TokenCounter,
    context: AgentContext,
    window: Sequence[Message],
    zone: tzinfo,
    limit: int,
) -> list[str]:
    """Return a line for each message that is replied to, in at most `limit` tokens.

    If the window shows the message, the line only says which one is meant. If it is the newest
    message and no part of it is marked, there is nothing to say.
    """
    shown = [message.seq for message in window]
    lines: list[str] = []
    room = limit // max(1, len(context.replies))
    for reply in context.replies:
        message, question = reply.message, reply.question
        parts: list[tuple[str, Message, str, int]] = []
        if message.seq not in shown:
            if question and question.seq not in shown:
                parts.append(("The question", question, _plain(question.text), room // 3))
            words = _words(counter, reply, room // 2) or _UNKNOWN
            parts.append(("The message replied to", message, words, room - room // 3))
        elif reply.quote or message.seq != shown[-1]:
            hint = counter.shorten(_plain(message.text), _HINT_TOKENS)
            hint = _marked(reply.quote) if reply.quote else hint
            parts.append(("The message replied to, which stands above", message, hint, room))
        for label, each, words, tokens in parts:
            when = dated(each.sent_at, context.now, zone)
            as_line = partial(memory_line, each, zone=zone, speakers=context.speakers)
            lines += _fitting(counter, f"{label}: [{when}]", words, tokens, as_line)
    return lines


def _fitting(
    counter: TokenCounter, label: str, words: str, limit: int, as_line: Callable[..., str]
) -> list[str]:
    """Return the line with as many of the words as fit into `limit` tokens; [] for none."""
    tokens = limit
    while tokens > 0:
        line = f"{label} {as_line(excerpt=counter.shorten(words, tokens))}"
        excess = counter.count(f"{line}\n") - limit
        if excess <= 0:
            return [line]
        tokens -= excess
    return []


def _words(counter: TokenCounter, reply: RepliedTo, room: int) -> str:
    """Return the text with the quoted part marked; a long text is shortened, the quote is not."""
    text, quote = _plain(reply.message.text), _plain(reply.quote)
    if not quote:
        return text
    before, found, after = text.partition(quote)
    whole = f"{before}{_marked(quote)}{after}"
    if found and counter.count(whole) <= room:
        return whole
    # Our own answers are stored as Markdown, so a quote may differ from them.
    return f"{counter.shorten(text, room // 3)} {_marked(quote)}"


def _marked(quote: str) -> str:
    return f"{_OPEN}{_plain(quote)}{_CLOSE}"


def _plain(text: str) -> str:
    return escaped(text).replace(_OPEN, "").replace(_CLOSE, "")
