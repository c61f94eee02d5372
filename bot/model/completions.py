"""Chat completions, the API of every OpenAI-compatible server: requests, and streams joined.

Servers leave fields out or fill them in their own way: empty `choices`, no `index`, several tool
calls under one index, arguments in pieces, usage last or never. Reading allows for all of these.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from bot.model.call import ModelReply, PromptMessage
from bot.model.dialects import (
    Accumulator,
    Effort,
    Options,
    Verbosity,
    WrittenAnswer,
    usage_of,
)
from bot.model.model_errors import CONTENT_FILTER, ContentRefused
from bot.model.wire import (
    MAX_CALLS,
    data_url,
    joined,
    list_of,
    new_call_id,
    object_of,
    reported_error,
    text_of,
)
from memory.behaviors.steps import ToolCall
from memory.behaviors.tool import ToolDefinition
from memory.text.shape import AnswerShape

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_NAME_CHARS = 64


class ChatCompletions:
    """Writes requests to `/chat/completions` and reads their answers."""

    name: Literal["chat", "Responses"] = "chat"
    path = "/chat/completions"
    fixed: Mapping[str, Any] = {}

    def prompt(self, messages: Sequence[PromptMessage]) -> Mapping[str, Any]:
        """Return the messages; this API has no field for reasoning items."""
        return {"messages": [_wire_message(message) for message in messages]}

    def streaming(
        self,
        messages: Sequence[PromptMessage],  # noqa: ARG002 - only Responses takes reasoning back
        origin: str,  # noqa: ARG002
    ) -> Options:
        """Ask for the usage at the end of a stream."""
        return {"stream_options": {"stream_options": {"include_usage": True}}}

    def tools(self, tools: Sequence[ToolDefinition], choice: str) -> Mapping[str, Any]:
        """Return the tools that a model may call."""
        wire: dict[str, Any] = {"tools": [_wire_tool(tool) for tool in tools]}
        return wire if choice == "auto" else {**wire, "tool_choice": choice}

    def max_tokens(self, count: int) -> Options:
        """Return the limit, first by its new name, which api.openai.com takes for every model."""
        return {name: {name: count} for name in ("max_completion_tokens", "max_tokens")}

    def effort(self, effort: Effort) -> Mapping[str, Any]:
        """Return how much the model should reason."""
        return {"reasoning_effort": effort}

    def verbosity(self, verbosity: Verbosity) -> Mapping[str, Any]:
        """Return how much the model should say."""
        return {"verbosity": verbosity}

    def json(self, shape: AnswerShape | None) -> Mapping[str, Any]:
        """Return that the answer must be JSON of a strict shape, or any JSON object."""
        if shape is None:
            return {"response_format": {"type": "json_object"}}
        named = {"name": "answer", "strict": True, "schema": shape.schema}
        return {"response_format": {"type": "json_schema", "json_schema": named}}

    def accumulator(
        self,
        max_chars: int | None,
        origin: str,  # noqa: ARG002
    ) -> "ChunkAccumulator":
        """Return an empty accumulator for a streamed answer."""
        return ChunkAccumulator(max_chars)

    def read(self, body: Mapping[str, object]) -> WrittenAnswer:
        """Return an answer that was not streamed; raise `ContentRefused`."""
        choice = object_of(list_of(body["choices"])[0])
        message, reason = object_of(choice["message"]), choice.get("finish_reason")
        if message.get("refusal") or reason == CONTENT_FILTER:
            raise ContentRefused("the model declined")
        usage = usage_of(body.get("usage"), "prompt", "completion")
        text = joined([text_of(message.get("content"))]).strip()
        return WrittenAnswer(text, reason == "length", usage)


CHAT = ChatCompletions()


def wire_name(name: str) -> str:
    """Return a tool's name as servers accept it, because a model may call a tool by any name."""
    return _NOT_IN_NAMES.sub("_", name)[:_MAX_NAME_CHARS] or "_"


def _wire_message(message: PromptMessage) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role, "content": _content(message)}
    if message.tool_calls:
        wire["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": wire_name(call.name), "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.role == "tool":
        wire["tool_call_id"] = message.tool_call_id
    return wire


def _content(message: PromptMessage) -> str | list[dict[str, Any]]:
    """Return the text alone, or the pictures behind it."""
    if not message.pictures:
        return message.content
    pictures = [
        {"type": "image_url", "image_url": {"url": data_url(each), "detail": each.detail}}
        for each in message.pictures
    ]
    return [{"type": "text", "text": message.content}, *pictures]


def _wire_tool(tool: ToolDefinition) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }
    return {"type": "function", "function": function}


@dataclass(slots=True)
class _PartialCall:
    index: object
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class ChunkAccumulator(Accumulator):
    """Joins the chunks of a streamed chat completion."""

    def __init__(self, max_chars: int | None = None) -> None:
        super().__init__(max_chars)
        self._calls: list[_PartialCall] = []

    def add(self, event: object) -> None:
        """Take one chunk."""
        self.is_empty = False
        chunk = object_of(event)
        if chunk.get("error"):
            raise reported_error(chunk)
        if usage := object_of(chunk.get("usage")):
            self._usage = usage_of(usage, "prompt", "completion")
        for choice in map(object_of, list_of(chunk.get("choices"))):
            delta = object_of(choice.get("delta"))
            self._text.add(text_of(delta.get("content")))
            for call in map(object_of, list_of(delta.get("tool_calls"))):
                self._add_call(call)
            if self._text.is_full:
                self._end("length")
            if self.is_over:
                return
            self._finish_reason = text_of(choice.get("finish_reason")) or self._finish_reason
            if self._finish_reason == CONTENT_FILTER:
                raise ContentRefused

    def reply(self) -> ModelReply:
        """Return the answer so far."""
        calls = tuple(
            ToolCall(call.id or new_call_id(), call.name, joined(call.arguments))
            for call in self._calls
            if call.name
        )
        return ModelReply(self._text.joined(), calls, self._finish_reason, self._usage)

    def _add_call(self, piece: Mapping[str, object]) -> None:
        if self.is_over:
            return
        function = object_of(piece.get("function"))
        call_id, name = text_of(piece.get("id")), text_of(function.get("name"))
        arguments = text_of(function.get("arguments"))
        self._count_call(call_id, name, arguments)
        call = self._call_of(piece.get("index"), call_id, name)
        if call is None:
            self._end("tool_calls")
            return
        call.id = call.id or call_id
        call.name = call.name or name
        if arguments:
            call.arguments.append(arguments)

    def _call_of(self, index: object, call_id: str, name: str) -> _PartialCall | None:
        """Return the call that a piece belongs to; None for a new one beyond `MAX_CALLS`.

        A new id or name means a new call, whatever the index is. But some servers make up a new id
        for each piece; then only the first piece names the tool.
        """
        same_index = [call for call in self._calls if call.index == index]
        if call_id and (name or not same_index):
            matching = [call for call in same_index if call.id == call_id]
        elif name:
            matching = [call for call in same_index if not call.name]
        else:
            matching = same_index or self._calls
        if matching:
            return matching[-1]
        if len(self._calls) == MAX_CALLS:
            return None
        self._calls.append(_PartialCall(index))
        return self._calls[-1]
