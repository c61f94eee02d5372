"""The Responses API, used without state on the server: nothing is stored there.

The reasoning items of a model come back encrypted, and we send them with the next request of the
same turn. They are part of the option `include`, so a server that refuses `include` gets none.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from bot.model.call import PromptMessage
from bot.model.completions import wire_name
from bot.model.dialects import Effort, Options, Verbosity, WrittenAnswer, usage_of
from bot.model.model_errors import ContentRefused
from bot.model.responses_stream import (
    ResponseAccumulator,
    finish_reason_of,
    text_of_output,
)
from bot.model.wire import data_url, list_of, object_of, reported_error
from memory.behaviors.tool import ToolDefinition
from memory.text.shape import AnswerShape

_ENCRYPTED = ["reasoning.encrypted_content"]


class ResponsesApi:
    """Writes requests to `/responses` and reads their answers."""

    name: Literal["chat", "Responses"] = "Responses"
    path = "/responses"
    fixed: Mapping[str, Any] = {"store": False}

    def prompt(self, messages: Sequence[PromptMessage]) -> Mapping[str, Any]:
        """Return messages, tool calls and tool results as entries of one list."""
        return {"input": list(_entries(messages, ""))}

    def streaming(self, messages: Sequence[PromptMessage], origin: str) -> Options:
        """Ask for encrypted reasoning items, and add those of earlier steps."""
        option: dict[str, Any] = {"include": _ENCRYPTED}
        if any(message.reasoning for message in messages):
            option["input"] = list(_entries(messages, origin))
        return {"include": option}

    def tools(self, tools: Sequence[ToolDefinition], choice: str) -> Mapping[str, Any]:
        """Return the tools that a model may call, not strict: we validate arguments ourselves."""
        wire: dict[str, Any] = {"tools": [_wire_tool(tool) for tool in tools]}
        return wire if choice == "auto" else {**wire, "tool_choice": choice}

    def max_tokens(self, count: int) -> Options:
        """Return the token limit of an answer, reasoning included."""
        return {"max_output_tokens": {"max_output_tokens": count}}

    def effort(self, effort: Effort) -> Mapping[str, Any]:
        """Return how much the model should reason."""
        return {"reasoning": {"effort": effort}}

    def verbosity(self, verbosity: Verbosity) -> Mapping[str, Any]:
        """Return how much the model should say."""
        return {"text": {"verbosity": verbosity}}

    def json(self, shape: AnswerShape | None) -> Mapping[str, Any]:
        """Return that the answer must be JSON of a strict shape, or any JSON object."""
        if shape is None:
            return {"text": {"format": {"type": "json_object"}}}
        named = {"name": "answer", "strict": True, "schema": shape.schema}
        return {"text": {"format": {"type": "json_schema", **named}}}

    def accumulator(self, max_chars: int | None, origin: str) -> ResponseAccumulator:
        """Return an empty accumulator for a streamed answer."""
        return ResponseAccumulator(max_chars, origin)

    def read(self, body: Mapping[str, object]) -> WrittenAnswer:
        """Return an answer that was not streamed; raise `ContentRefused`, `AnswerIncomplete`."""
        if body.get("error"):
            raise reported_error(body)
        output = [object_of(entry) for entry in list_of(body["output"])]
        if any(_is_refused(entry) for entry in output):
            raise ContentRefused("the model declined")
        reason = finish_reason_of(body, has_calls=False)
        usage = usage_of(body.get("usage"), "input", "output")
        return WrittenAnswer(text_of_output(output).strip(), reason == "length", usage)


RESPONSES = ResponsesApi()


def _entries(messages: Sequence[PromptMessage], origin: str) -> Iterator[Mapping[str, Any]]:
    """Yield the entries of a prompt, with the reasoning items that `origin` can read."""
    for message in messages:
        if message.role == "tool":
            yield {
                "type": "function_call_output",
                "call_id": message.tool_call_id,
                "output": message.content,
            }
        else:
            yield from _message_entries(message, origin)


def _message_entries(message: PromptMessage, origin: str) -> Iterator[Mapping[str, Any]]:
    reasoning: dict[int, list[Mapping[str, Any]]] = {}
    for each in message.reasoning:
        if each.origin == origin:
            reasoning.setdefault(each.before_call, []).append(each.body)
    yield from reasoning.pop(0, ())
    if message.content or not message.tool_calls:
        yield {"role": message.role, "content": _content(message)}
    for number, call in enumerate(message.tool_calls):
        yield from reasoning.pop(number, ())
        yield {
            "type": "function_call",
            "call_id": call.id,
            "name": wire_name(call.name),
            "arguments": call.arguments,
        }


def _content(message: PromptMessage) -> str | list[dict[str, Any]]:
    """Return the text alone, or the pictures behind it."""
    if not message.pictures:
        return message.content
    pictures = [
        {"type": "input_image", "image_url": data_url(each), "detail": each.detail}
        for each in message.pictures
    ]
    return [{"type": "input_text", "text": message.content}, *pictures]


def _is_refused(entry: Mapping[str, object]) -> bool:
    parts = map(object_of, list_of(entry.get("content")))
    return entry.get("type") == "message" and any(part.get("refusal") for part in parts)


def _wire_tool(tool: ToolDefinition) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
        "strict": False,
    }
