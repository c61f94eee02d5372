"""Chat completions with tools and streaming, the dialect of every OpenAI-compatible server.

Optional parameters are sent only when they are wanted, and no more once a server has refused them.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

import structlog
from openai import AsyncOpenAI

from bot.model.errors import FOREIGN, AnswerIncomplete, ModelRefused, ModelUnavailable, translate
from bot.model.stream import ReplyAccumulator
from bot.model.values import ModelReply, PromptMessage, ToolDefinition

log = structlog.get_logger(__name__)

_TRIES = 2
_OPTIONAL = {"stream_options": {"include_usage": True}}


class OpenAIChatModel:
    """One model of one server."""

    def __init__(self, client: AsyncOpenAI, model: str, timeout_s: float) -> None:
        self._client = client
        self._model = model
        self._timeout_s = timeout_s
        self._optional: dict[str, Any] = dict(_OPTIONAL)

    async def complete(
        self,
        messages: Sequence[PromptMessage],
        tools: Sequence[ToolDefinition],
        *,
        tool_choice: Literal["auto", "none"] = "auto",
    ) -> ModelReply:
        """Return one complete answer; one that breaks off is asked for again, once.

        The time limit covers all of it. Raise `ModelError`.
        """
        request: dict[str, Any] = {
            "model": self._model,
            "messages": [_wire_message(message) for message in messages],
        }
        if tools:
            request["tools"] = [_wire_tool(tool) for tool in tools]
            if tool_choice != "auto":
                request["tool_choice"] = tool_choice
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._insist(request)
        except TimeoutError as error:
            raise ModelUnavailable("no answer in time") from error

    async def _insist(self, request: dict[str, Any]) -> ModelReply:
        for _ in range(_TRIES):
            reply = await self._without_what_is_refused(request)
            if reply is not None:
                return reply
            log.warning("answer broke off")
        raise AnswerIncomplete("no finish reason")

    async def _without_what_is_refused(self, request: dict[str, Any]) -> ModelReply | None:
        """Call the server, once more for each optional parameter that it turns down."""
        while True:
            try:
                return await self._stream(request)
            except ModelRefused as error:
                name = error.param.split(".")[0]
                if name not in self._optional:
                    raise
                log.info("parameter dropped", parameter=name)
                self._optional.pop(name, None)

    async def _stream(self, request: dict[str, Any]) -> ModelReply | None:
        """Return the whole answer, or `None` when the stream ended before it was finished."""
        answer = ReplyAccumulator()
        try:
            stream = await self._client.chat.completions.create(
                **request, **self._optional, stream=True
            )
            async with stream:
                async for chunk in stream:
                    answer.add(chunk)
        except FOREIGN as error:
            raise translate(error) from error
        return answer.reply() if answer.is_complete else None


def _wire_message(message: PromptMessage) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        wire["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
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
