"""Turns messages and steps into text of a prompt: escaped, named, dated, joined, and its tokens.

All functions are pure. `assemble` decides how much of the text is sent. Estimates of tokens are
high on purpose. Servers count differently, and no server may count more than we do.
"""

import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import tzinfo
from functools import partial
from itertools import groupby
from typing import Any

from bot.model.call import PromptMessage
from bot.model.dialects import wire_call, wire_tool
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import CompletedStep, ToolCall
from memory.behaviors.tool import ToolDefinition
from memory.message import Message, RepliedTo
from memory.search.message_search import SearchResult
from memory.text.message_lines import Speakers, dated, indented, memory_line, origin_of, unseen_note
from memory.text.tokens import MESSAGE_OVERHEAD, TokenCounter
from memory.text.untrusted_text import escaped, escaped_json


def window_text(message: Message, speakers: Speakers | None, zone: tzinfo) -> str:
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


_OPEN, _CLOSE = "⟦", "⟧"
"""Around the part that the person marked; people's own texts lose these characters here."""
_HINT_TOKENS = 24  # for a message that the window shows: enough to say which one is meant
_UNKNOWN = "(its words are not known to you)"


def reply_lines(
    counter: TokenCounter, context: AgentContext, window: Sequence[Message], limit: int
) -> list[str]:
    """Return a line for each message that is replied to, in at most `limit` tokens.

    If the window shows the message, the line only says which one is meant. If it is the newest
    message and no part of it is marked, there is nothing to say.
    """
    shown, zone = [message.seq for message in window], context.call_context.zone
    lines: list[str] = []
    room = limit // max(1, len(context.background.replies))
    for reply in context.background.replies:
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


# A result keeps at least this many tokens, so that the model can see what it was.
_MIN_RESULT_TOKENS = 48


def messages_tokens(count: Callable[[str], int], messages: Iterable[PromptMessage]) -> int:
    """Count messages as they are sent: text, calls as JSON, reasoning, and one overhead each."""
    return sum(
        count(message.content)
        + sum(count(_json(wire_call(call))) for call in message.tool_calls)
        + count(message.tool_call_id)
        + sum(item.tokens for item in message.reasoning)
        + MESSAGE_OVERHEAD
        for message in messages
    )


def tools_tokens(count: Callable[[str], int], tools: Iterable[ToolDefinition]) -> int:
    """Count the definitions of tools as JSON."""
    return sum(count(_json(wire_tool(tool))) for tool in tools)


def step_messages(
    counter: TokenCounter, steps: Sequence[CompletedStep], limit: int
) -> tuple[PromptMessage, ...]:
    """Return the calls and results of `steps` in their order, in at most `limit` tokens.

    Results that do not fit are shortened, the oldest first. If short results do not fit either, the
    model's reasoning is left out, then whole steps, the oldest first. A call and its result always
    stay together.
    """
    rendered = [_step(counter, step, limit) for step in steps]
    if sum(_least(counter, step) for step in rendered) > limit:
        rendered = [tuple(replace(each, reasoning=()) for each in step) for step in rendered]
    while rendered and sum(_least(counter, step) for step in rendered) > limit:
        rendered.pop(0)
    messages = [message for step in rendered for message in step]
    excess = messages_tokens(counter.count, messages) - limit
    for index, message in enumerate(messages):
        cut = min(excess, _spare(counter, message))
        if cut > 0:
            kept = counter.count(message.content) - cut
            short = replace(message, content=counter.shorten(message.content, kept))
            excess -= counter.count(message.content) - counter.count(short.content)
            messages[index] = short
    return tuple(messages)


def _step(counter: TokenCounter, step: CompletedStep, limit: int) -> tuple[PromptMessage, ...]:
    """Return the messages of a step, with no part longer than its share of `limit`."""
    said = counter.shorten(escaped(step.action.text), limit // 4)
    calls = tuple(_readable(counter, call, limit // 4) for call in step.action.calls)
    return (
        PromptMessage("assistant", said, tool_calls=calls, reasoning=step.action.reasoning),
        *(
            PromptMessage(
                "tool", counter.shorten(escaped(result.text), limit), tool_call_id=result.call_id
            )
            for result in step.results
        ),
    )


def _readable(counter: TokenCounter, call: ToolCall, limit: int) -> ToolCall:
    """Return the call, with `{}` in place of arguments that cannot be sent.

    Arguments that are too long cannot be sent, because JSON cannot be shortened. Arguments that are
    no JSON object cannot be sent either: some servers parse them and refuse the whole prompt.
    """
    arguments = escaped_json(call.arguments)
    try:
        is_object = isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        is_object = False
    is_sendable = is_object and counter.shorten(arguments, limit) == arguments
    return replace(call, arguments=arguments if is_sendable else "{}")


def _least(counter: TokenCounter, step: Sequence[PromptMessage]) -> int:
    return sum(
        messages_tokens(counter.count, [message]) - _spare(counter, message) for message in step
    )


def _spare(counter: TokenCounter, message: PromptMessage) -> int:
    """Return by how many tokens a message may be shortened; only results may be."""
    is_result = message.role == "tool"
    return max(0, counter.count(message.content) - _MIN_RESULT_TOKENS) if is_result else 0


def _json(sent: Mapping[str, Any]) -> str:
    return json.dumps(sent, ensure_ascii=False)
