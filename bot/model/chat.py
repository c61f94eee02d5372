"""Chat completions with tools and streaming, the dialect of every OpenAI-compatible server.

Optional parameters are sent only when they are wanted, and no more once a server has refused them.
"""

import asyncio
import json
import re
from collections.abc import Sequence
from contextlib import aclosing, suppress
from typing import Any, Literal

import httpx2
import structlog
from openai import AsyncOpenAI

from bot.model.errors import (
    FOREIGN,
    AnswerIncomplete,
    ModelRefused,
    ModelUnavailable,
    NotAModel,
    translate,
)
from bot.model.events import EventReader
from bot.model.stream import ReplyAccumulator
from bot.model.values import ModelReply, PromptMessage
from memory.tool import ToolDefinition

log = structlog.get_logger(__name__)

_OPTIONAL = {"stream_options": {"include_usage": True}}
_PAUSE_S = 0.1
"""A server that has just broken off gets a moment before it is asked again."""
_REST_S = 0.1
"""A connection can be used again when its answer is read to the end; this is waited for it."""
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME = 64


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
        request: dict[str, Any] = {"messages": [_wire_message(message) for message in messages]}
        if tools:
            request["tools"] = [_wire_tool(tool) for tool in tools]
            if tool_choice != "auto":
                request["tool_choice"] = tool_choice
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._insist(request)
        except TimeoutError as error:
            raise ModelUnavailable("no answer in time", code="timeout") from error

    async def _insist(self, request: dict[str, Any]) -> ModelReply:
        try:
            return await self._ask(request)
        except AnswerIncomplete as error:
            log.warning("answer broke off", reason=str(error))
            await asyncio.sleep(_PAUSE_S)
            return await self._ask(request)

    async def _ask(self, request: dict[str, Any]) -> ModelReply:
        """Return one answer, asked without what this server has turned down."""
        while True:
            optional = dict(self._optional)
            try:
                return await self._stream(request | optional)
            except ModelRefused as error:
                refused = [name for name in optional if error.objects_to(name)]
                if not refused:
                    raise
                for name in refused:
                    log.info("parameter dropped", parameter=name)
                    self._optional.pop(name, None)

    async def _stream(self, request: dict[str, Any]) -> ModelReply:
        """Return the answer to one request; raise `AnswerIncomplete` when it broke off."""
        completions = self._client.chat.completions
        try:
            # What is given as `extra_body` is sent as it is. Given as arguments, a prompt of forty
            # messages is first compared with the SDK's types, which takes 10 ms and finds nothing.
            stream = await completions.create(
                model=self._model, messages=(), stream=True, extra_body=request
            )
        except FOREIGN as error:
            raise translate(error) from error
        answer = ReplyAccumulator()
        try:
            async with stream:
                await _read(stream.response, answer)
        except (*FOREIGN, httpx2.HTTPError, AnswerIncomplete) as error:
            if not answer.is_complete:
                raise AnswerIncomplete(type(error).__name__) from error
        if not answer.is_complete:
            raise _why_unfinished(answer, stream.response)
        return answer.reply()


async def _read(response: httpx2.Response, answer: ReplyAccumulator) -> None:
    """Read a streamed answer to its end."""
    events = EventReader()
    async with aclosing(response.aiter_bytes()) as body:
        async for piece in body:
            for event in events.feed(piece):
                # The standard library's reader: faster ones refuse half an emoji.
                answer.add(json.loads(event))
            if events.is_done:
                break
        with suppress(TimeoutError):
            async with asyncio.timeout(_REST_S):
                async for _ in body:
                    pass


def _why_unfinished(
    answer: ReplyAccumulator, response: httpx2.Response
) -> AnswerIncomplete | NotAModel:
    """Tell a stream that broke off from what was no stream: a page behind a wrong base URL, say."""
    kind = response.headers.get("content-type", "").partition(";")[0]
    if answer.is_empty and kind != "text/event-stream":
        return NotAModel(f"{kind or 'nothing'} instead of a stream")
    return AnswerIncomplete("no finish reason")


def _wire_message(message: PromptMessage) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        wire["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": _wire_name(call.name), "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.role == "tool":
        wire["tool_call_id"] = message.tool_call_id
    return wire


def _wire_name(name: str) -> str:
    """Return the name of a call as servers take it: a model may make up any."""
    return _NOT_IN_NAMES.sub("_", name)[:_LONGEST_NAME] or "_"


def _wire_tool(tool: ToolDefinition) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }
    return {"type": "function", "function": function}
