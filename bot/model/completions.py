"""Chat completions, the API of every OpenAI-compatible server: requests, and streams joined.

Servers leave fields out or fill them in their own way: empty `choices`, no `index`, several tool
calls under one index, arguments in pieces, usage last or never. Reading allows for all of these.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.model.call import ModelReply, PromptMessage
from bot.model.model_errors import CONTENT_FILTER, ContentRefused
from bot.model.wire import (
    MAX_CALLS,
    Accumulator,
    Dialect,
    count_of,
    joined,
    list_of,
    object_of,
    reported_error,
    text_of,
    tool_call,
    usage_of,
)
from memory.behaviors.steps import ToolCall
from memory.behaviors.tool import ToolDefinition
from memory.text.internal_model import AnswerShape

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_NAME_CHARS = 64


def wire_name(name: str) -> str:
    """Return a tool's name as servers accept it, because a model may call a tool by any name."""
    return _NOT_IN_NAMES.sub("_", name)[:_MAX_NAME_CHARS] or "_"


def _prompt(messages: Sequence[PromptMessage]) -> Mapping[str, Any]:
    entries = []
    for message in messages:
        entry: dict[str, Any] = {"role": message.role, "content": message.content}
        if message.pictures:
            entry["content"] = [{"type": "text", "text": message.content}]
            for each in message.pictures:
                image = {"url": each.data_url, "detail": each.detail}
                entry["content"].append({"type": "image_url", "image_url": image})
        if message.tool_calls:
            entry["tool_calls"] = [wire_call(call) for call in message.tool_calls]
        if message.role == "tool":
            entry["tool_call_id"] = message.tool_call_id
        entries.append(entry)
    return {"messages": entries}


def wire_call(call: ToolCall) -> dict[str, Any]:
    """Return a call that a model has made as a part of the prompt."""
    function = {"name": wire_name(call.name), "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def wire_tool(tool: ToolDefinition) -> dict[str, Any]:
    """Return a tool that a model may call."""
    named = {"name": tool.name, "description": tool.description}
    return {"type": "function", "function": {**named, "parameters": dict(tool.parameters)}}


def _json(shape: AnswerShape | None) -> Mapping[str, Any]:
    if shape is None:
        return {"response_format": {"type": "json_object"}}
    named = {"name": "answer", "strict": True, "schema": shape.schema}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


@dataclass(slots=True)
class _PartialCall:
    index: object
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


@dataclass(slots=True, repr=False, eq=False)
class ChunkAccumulator(Accumulator):
    """Joins the chunks of a streamed chat completion."""

    _calls: list[_PartialCall] = field(default_factory=list)
    _index: int | None = None  # of the answer that is read

    def add(self, event: object) -> None:
        """Take one chunk. If a server sends several answers, only the first is read."""
        self.is_empty = False
        chunk = object_of(event)
        if chunk.get("error"):
            raise reported_error(chunk)
        if usage := object_of(chunk.get("usage")):
            self.usage = usage_of(usage, "prompt", "completion")
        for choice in map(object_of, list_of(chunk.get("choices"))):
            index = count_of(choice.get("index"))
            self._index = index if self._index is None else self._index
            if index != self._index:
                continue
            delta = object_of(choice.get("delta"))
            content = delta.get("content")  # Mistral's reasoning models send a list of parts
            parts = list_of(content) if isinstance(content, list) else [{"text": content}]
            self._add_text("".join(text_of(object_of(part).get("text")) for part in parts))
            for call in map(object_of, list_of(delta.get("tool_calls"))):
                self._add_call(call)
            if self.is_over:
                return
            self.finish_reason = text_of(choice.get("finish_reason")) or self.finish_reason
            if self.finish_reason == CONTENT_FILTER:
                raise ContentRefused

    def add_whole(self, body: Mapping[str, object]) -> None:
        """Take a whole completion."""
        choice = object_of(list_of(body["choices"])[0])
        message = object_of(choice["message"])
        if message.get("refusal"):
            raise ContentRefused("the model declined")
        self.add({**body, "choices": [{**choice, "delta": message}]})

    def reply(self) -> ModelReply:
        """Return the answer so far."""
        calls = [tool_call(each.id, each.name, each.arguments) for each in self._calls if each.name]
        return ModelReply(joined(self._pieces), tuple(calls), self.finish_reason, self.usage)

    def _add_call(self, piece: Mapping[str, object]) -> None:
        if self.is_over:
            return
        function = object_of(piece.get("function"))
        call_id, name = text_of(piece.get("id")), text_of(function.get("name"))
        arguments = text_of(function.get("arguments"))
        self._count_call(call_id, name, arguments)

        # A new id or name means a new call, whatever the index is. But some servers make up a new
        # id for each piece; then only the first piece names the tool.
        index = piece.get("index")
        same_index = [call for call in self._calls if call.index == index]
        if call_id and (name or not same_index):
            matching = [call for call in same_index if call.id == call_id]
        elif name:
            matching = [call for call in same_index if not call.name]
        else:
            matching = same_index or self._calls
        if matching:
            call = matching[-1]
        elif len(self._calls) < MAX_CALLS:
            call = _PartialCall(index)
            self._calls.append(call)
        else:
            self._end("tool_calls")
            return

        call.id = call.id or call_id
        call.name = call.name or name
        if arguments:
            call.arguments.append(arguments)


CHAT = Dialect(
    name="chat",
    path="/chat/completions",
    fixed={},
    # The first one is the new name, which api.openai.com takes for every model.
    limits=("max_completion_tokens", "max_tokens"),
    prompt=_prompt,
    streaming=lambda *_: {"stream_options": {"stream_options": {"include_usage": True}}},
    tool=wire_tool,
    effort=lambda effort: {"reasoning_effort": effort},
    verbosity=lambda verbosity: {"verbosity": verbosity},
    json=_json,
    accumulator=ChunkAccumulator,
)
