"""Counts the tokens of a prompt's messages, and shortens the steps of a run until they fit.

Estimates are high on purpose. Servers count differently, and no server may count more than we do.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bot.model.call import PromptMessage
from bot.model.completions import wire_call, wire_tool
from memory.behaviors.steps import CompletedStep, ToolCall
from memory.behaviors.tool import ToolDefinition
from memory.message import Picture
from memory.text.tokens import MESSAGE_OVERHEAD, TokenCounter
from memory.text.untrusted_text import escaped, escaped_json

# A result keeps at least this many tokens, so that the model can see what it was.
_MIN_RESULT_TOKENS = 48
_LOW_DETAIL_TOKENS = 512


def messages_tokens(counter: TokenCounter, messages: Iterable[PromptMessage]) -> int:
    """Count messages as they are sent: text, calls as JSON, reasoning, and one overhead each."""
    return sum(
        counter.count(message.content)
        + sum(counter.count(_json(wire_call(call))) for call in message.tool_calls)
        + counter.count(message.tool_call_id)
        + sum(item.tokens for item in message.reasoning)
        + MESSAGE_OVERHEAD
        for message in messages
    )


def picture_tokens(picture: Picture) -> int:
    """Return about how many tokens a picture takes, more than OpenAI's documentation says.

    Its models count squares of 32 pixels, at most 1,536 of them, times up to 1.62. With low detail
    they look at 512 by 512 pixels: 256 squares, which makes 415. Servers that do not know `detail`
    count more.
    """
    if picture.detail == "low":
        return _LOW_DETAIL_TOKENS
    squares = -(-picture.width // 32) * -(-picture.height // 32)
    return max(_LOW_DETAIL_TOKENS, int(1.62 * min(squares, 1_536)) + 1)


def fitting_pictures(pictures: Sequence[Picture], limit: int) -> tuple[tuple[Picture, ...], int]:
    """Return as many of the first pictures as take at most `limit` tokens, and their tokens."""
    shown, tokens = 0, 0
    for cost in map(picture_tokens, pictures):
        if tokens + cost > limit:
            break
        shown, tokens = shown + 1, tokens + cost
    return tuple(pictures[:shown]), tokens


def tools_tokens(counter: TokenCounter, tools: Iterable[ToolDefinition]) -> int:
    """Count the definitions of tools as JSON."""
    return sum(counter.count(_json(wire_tool(tool))) for tool in tools)


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
    excess = messages_tokens(counter, messages) - limit
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
    is_sendable = counter.shorten(arguments, limit) == arguments and _is_object(arguments)
    return replace(call, arguments=arguments if is_sendable else "{}")


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _least(counter: TokenCounter, step: Iterable[PromptMessage]) -> int:
    """Count a step with its results as short as they may become."""
    return sum(messages_tokens(counter, [message]) - _spare(counter, message) for message in step)


def _spare(counter: TokenCounter, message: PromptMessage) -> int:
    """Return by how many tokens a message may be shortened; only results may be."""
    return (
        max(0, counter.count(message.content) - _MIN_RESULT_TOKENS) if message.role == "tool" else 0
    )


def _json(sent: Mapping[str, Any]) -> str:
    return json.dumps(sent, ensure_ascii=False)
