"""The two APIs of OpenAI as dialects: the requests of each, and its streamed answers joined.

Chat completions are the API of every OpenAI-compatible server. Servers leave fields out or fill
them in their own way: empty `choices`, no `index`, several tool calls under one index, arguments in
pieces, usage last or never. Reading allows for all of these.

The Responses API is used without state on the server: nothing is stored there. The reasoning items
of a model come back encrypted, and we send them with the next request of the same turn. They are
part of the option `include`, so a server that refuses `include` gets none. Text of a stream is
taken from its deltas; tool calls and encrypted reasoning from their items once these are done. What
did not arrive that way is taken from the last event, which repeats the whole response.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.model.call import ModelReply, PromptMessage, ReasoningItem
from bot.model.model_errors import CONTENT_FILTER, AnswerIncomplete, ContentRefused
from bot.model.wire import (
    MAX_CALLS,
    Accumulator,
    Dialect,
    Options,
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


def _json_format(shape: AnswerShape | None, key: str = "") -> dict[str, Any]:
    """Return the format of an answer in JSON; chat completions have the schema under a key."""
    if shape is None:
        return {"type": "json_object"}
    named = {"name": "answer", "strict": True, "schema": shape.schema}
    return {"type": "json_schema", **({key: named} if key else named)}


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
            if isinstance(content := delta.get("content"), list):  # Mistral's reasoning models
                content = "".join(text_of(object_of(part).get("text")) for part in list_of(content))
            self._add_text(text_of(content))
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
    json=lambda shape: {"response_format": _json_format(shape, "json_schema")},
    accumulator=ChunkAccumulator,
)


_TEXT = ("response.output_text.delta", "response.refusal.delta")
_END = ("response.completed", "response.incomplete", "response.failed")
_SENT_BACK = ("type", "id", "summary", "encrypted_content")
"""Fields of a reasoning item that we send back; servers refuse some others, such as `status`."""
_CALL_FIELDS = ("call_id", "name", "arguments")
_BETWEEN_MESSAGES = "\n\n"


@dataclass(slots=True, repr=False, eq=False)
class ResponseAccumulator(Accumulator):
    """Joins the events of one response."""

    _current_message: object = None
    _items: list[Mapping[str, object]] = field(default_factory=list)
    _calls: int = 0

    def add(self, event: object) -> None:
        """Take one event."""
        self.is_empty = False
        given = object_of(event)
        kind = given.get("type")
        if kind in _TEXT:
            message, piece = given.get("output_index"), text_of(given.get("delta"))
            is_further = piece and self._current_message not in (None, message)
            self._add_text(_BETWEEN_MESSAGES + piece if is_further else piece)
            self._current_message = message
        elif kind == "response.output_item.done":
            self._add_item(object_of(given.get("item")))
        elif kind in _END:
            self._add_end(object_of(given.get("response")))
        elif kind == "error" or given.get("error"):
            raise reported_error(given)

    def add_whole(self, body: Mapping[str, object]) -> None:
        """Take a whole response."""
        if body.get("error"):
            raise reported_error(body)
        for item in map(object_of, list_of(body["output"])):
            parts = map(object_of, list_of(item.get("content")))
            if item.get("type") == "message" and any(part.get("refusal") for part in parts):
                raise ContentRefused("the model declined")
        self._add_end(body)

    def reply(self) -> ModelReply:
        """Return the answer so far."""
        calls: list[ToolCall] = []
        reasoning: list[tuple[int, Mapping[str, object]]] = []
        for item in self._items:
            if item.get("type") == "function_call" and item.get("name"):
                call_id, name, arguments = (text_of(item.get(each)) for each in _CALL_FIELDS)
                calls.append(tool_call(call_id, name, [arguments]))
            elif item.get("type") == "reasoning" and item.get("encrypted_content"):
                kept = {name: item[name] for name in _SENT_BACK if item.get(name) is not None}
                reasoning.append((len(calls), kept))
        tokens = self.usage.reasoning_tokens // max(1, len(reasoning))
        items = tuple(
            ReasoningItem(self.origin, before_call, {"summary": [], **item}, tokens)
            for before_call, item in reasoning
        )
        text = joined(self._pieces)
        return ModelReply(text, tuple(calls), self.finish_reason, self.usage, items)

    def _add_item(self, item: Mapping[str, object]) -> None:
        if item.get("type") == "function_call":
            self._count_call(*(text_of(item.get(each)) for each in _CALL_FIELDS))
            if self._calls == MAX_CALLS:
                self._end("tool_calls")
                return
            self._calls += 1
        if len(self._items) < 2 * MAX_CALLS:
            # Half an emoji could not be sent back. An item is whole: no other half follows.
            self._items.append(json.loads(joined([json.dumps(item, ensure_ascii=False)])))

    def _add_end(self, response: Mapping[str, object]) -> None:
        if error := object_of(response.get("error")):
            raise reported_error({"error": error})
        self.usage = usage_of(response.get("usage"), "input", "output")
        output = [object_of(item) for item in list_of(response.get("output"))]
        if not self._items:
            for item in output[: 2 * MAX_CALLS]:
                self._add_item(item)
        if self._current_message is None:
            self._add_text(_text_of_output(output))

        if object_of(response.get("incomplete_details")).get("reason") == CONTENT_FILTER:
            raise ContentRefused
        match response.get("status"):  # we name the end as chat completions would
            case "completed":
                self._end("tool_calls" if self._calls else "stop")
            case "incomplete":
                self._end("length")
            case _:
                raise AnswerIncomplete("not finished")


def _text_of_output(output: Sequence[Mapping[str, object]]) -> str:
    messages = [item for item in output if item.get("type") == "message"]
    contents = [map(object_of, list_of(message.get("content"))) for message in messages]
    texts = [
        joined([text_of(part.get("text")) or text_of(part.get("refusal")) for part in parts])
        for parts in contents
    ]
    return _BETWEEN_MESSAGES.join(filter(None, texts))


def _entries(messages: Sequence[PromptMessage], origin: str) -> Iterator[Mapping[str, Any]]:
    for message in messages:
        if message.role == "tool":
            answered, output = message.tool_call_id, message.content
            yield {"type": "function_call_output", "call_id": answered, "output": output}
            continue
        readable = [each for each in message.reasoning if each.origin == origin]
        yield from (each.body for each in readable if each.before_call == 0)
        if message.content or not message.tool_calls:
            content: str | list[dict[str, Any]] = message.content
            if message.pictures:
                content = [{"type": "input_text", "text": message.content}]
                for each in message.pictures:
                    image = {"image_url": each.data_url, "detail": each.detail}
                    content.append({"type": "input_image", **image})
            yield {"role": message.role, "content": content}
        for number, call in enumerate(message.tool_calls):
            if number:
                yield from (each.body for each in readable if each.before_call == number)
            called = {"name": wire_name(call.name), "arguments": call.arguments}
            yield {"type": "function_call", "call_id": call.id, **called}


def _streaming(messages: Sequence[PromptMessage], origin: str) -> Options:
    option: dict[str, Any] = {"include": ["reasoning.encrypted_content"]}
    if any(message.reasoning for message in messages):
        option["input"] = list(_entries(messages, origin))
    return {"include": option}


RESPONSES = Dialect(
    name="Responses",
    path="/responses",
    fixed={"store": False},
    limits=("max_output_tokens",),
    prompt=lambda messages: {"input": list(_entries(messages, ""))},
    streaming=_streaming,
    # Not strict: we validate arguments ourselves.
    tool=lambda tool: {"type": "function", **wire_tool(tool)["function"], "strict": False},
    effort=lambda effort: {"reasoning": {"effort": effort}},
    verbosity=lambda verbosity: {"text": {"verbosity": verbosity}},
    json=lambda shape: {"text": {"format": _json_format(shape)}},
    accumulator=ResponseAccumulator,
)
