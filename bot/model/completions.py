"""Chat completions: the API of every OpenAI-compatible server."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from bot.model.call import PromptMessage
from bot.model.dialects import Effort, Options, Verbosity, WrittenAnswer
from bot.model.model_errors import CONTENT_FILTER, ContentRefused
from bot.model.stream import ReplyAccumulator, usage_of
from bot.model.wire import joined, list_of, object_of, text_of
from memory.behaviors.tool import ToolDefinition
from memory.text.shape import Shape

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_NAME = 64


class ChatCompletions:
    """Writes requests to `/chat/completions` and reads their answers."""

    name: Literal["chat", "Responses"] = "chat"
    path = "/chat/completions"
    fixed: Mapping[str, Any] = {}

    def prompt(self, messages: Sequence[PromptMessage]) -> Mapping[str, Any]:
        """Return the messages; thoughts of earlier steps have no place in this API."""
        return {"messages": [_wire_message(message) for message in messages]}

    def streaming(
        self,
        messages: Sequence[PromptMessage],  # noqa: ARG002 - only Responses takes thoughts back
        origin: str,  # noqa: ARG002
    ) -> Options:
        """Return that a stream shall end with what was billed."""
        return {"stream_options": {"stream_options": {"include_usage": True}}}

    def tools(self, tools: Sequence[ToolDefinition], choice: str) -> Mapping[str, Any]:
        """Return the tools that a model may call."""
        wire: dict[str, Any] = {"tools": [_wire_tool(tool) for tool in tools]}
        return wire if choice == "auto" else {**wire, "tool_choice": choice}

    def max_tokens(self, count: int) -> Options:
        """Return the bound under its new name, which api.openai.com takes for every model."""
        return {name: {name: count} for name in ("max_completion_tokens", "max_tokens")}

    def effort(self, effort: Effort) -> Mapping[str, Any]:
        """Return how much a model shall think."""
        return {"reasoning_effort": effort}

    def verbosity(self, verbosity: Verbosity) -> Mapping[str, Any]:
        """Return how much a model shall say."""
        return {"verbosity": verbosity}

    def json(self, shape: Shape | None) -> Mapping[str, Any]:
        """Return that the answer is JSON of a strict shape, or any."""
        if shape is None:
            return {"response_format": {"type": "json_object"}}
        named = {"name": "answer", "strict": True, "schema": shape.schema}
        return {"response_format": {"type": "json_schema", "json_schema": named}}

    def accumulator(
        self,
        max_chars: int | None,
        origin: str,  # noqa: ARG002
    ) -> ReplyAccumulator:
        """Return what joins a streamed answer."""
        return ReplyAccumulator(max_chars)

    def read(self, body: Mapping[str, object]) -> WrittenAnswer:
        """Return an answer that was not streamed; raise `ContentRefused`."""
        choice = object_of(list_of(body["choices"])[0])
        message, reason = object_of(choice["message"]), choice.get("finish_reason")
        if message.get("refusal") or reason == CONTENT_FILTER:
            raise ContentRefused("the model declined")
        usage = usage_of(object_of(body.get("usage")))
        text = joined([text_of(message.get("content"))]).strip()
        return WrittenAnswer(text, reason == "length", usage)


CHAT = ChatCompletions()


def wire_name(name: str) -> str:
    """Return the name of a call as servers take it: a model may make up any."""
    return _NOT_IN_NAMES.sub("_", name)[:_MAX_NAME] or "_"


def _wire_message(message: PromptMessage) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role, "content": message.content}
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


def _wire_tool(tool: ToolDefinition) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }
    return {"type": "function", "function": function}
