"""The local server's Responses API through the real SDK: answers, streams, thoughts, usage."""

from collections.abc import Sequence
from typing import Any

import pytest
from openai import AsyncOpenAI
from openai.types.responses import (
    FunctionToolParam,
    Response,
    ResponseReasoningItem,
    ResponseStreamEvent,
)
from pydantic import TypeAdapter

from memory.behaviors.steps import ToolCall
from tests.servers.model_api import ModelApiServer, Quirk, Reply, Scripted, is_responses
from tests.servers.model_api_client import client_of

TEXT = "A longer answer,\n\n with  blanks, 日本語の長い言葉が続くのですよ and a 🙂 at its end. "
CALLS = (
    ToolCall("call_a", "calculate", '{"expression": "(1 + 2) * 3 / 4"}'),
    ToolCall("call_b", "current_time", "{}"),
)
ENCRYPTED = {"store": False, "include": ["reasoning.encrypted_content"]}
_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def tool(name: str) -> FunctionToolParam:
    parameters: dict[str, object] = {"type": "object", "properties": {"it": {"type": "string"}}}
    return {"type": "function", "name": name, "parameters": parameters, "strict": False}


TOOLS = [tool("calculate"), tool("current_time")]


async def answer(client: AsyncOpenAI, **more: Any) -> Response:
    asked: dict[str, Any] = {"model": "m", "input": "hello", **more}
    response = await client.responses.create(**asked)
    assert isinstance(response, Response)
    Response.model_validate(response.model_dump(by_alias=True))
    return response


async def events(client: AsyncOpenAI, **more: Any) -> list[Any]:
    asked: dict[str, Any] = {"model": "m", "input": "hello", "stream": True, **more}
    return [event async for event in await client.responses.create(**asked)]


def types(streamed: Sequence[Any]) -> list[str]:
    kinds = [event.type for event in streamed]
    return [kind for at, kind in enumerate(kinds) if at == 0 or kinds[at - 1] != kind]


async def test_a_text_is_returned_unchanged() -> None:
    async with ModelApiServer(Scripted(TEXT)) as server, client_of(server) as client:
        response = await answer(client, instructions="Be kind.")
    assert (response.output_text, response.status, response.model) == (TEXT, "completed", "m")
    [chat] = server.log.chats
    assert is_responses(chat)
    assert [(each.role, each.content) for each in chat.messages] == [
        ("system", "Be kind."),
        ("user", "hello"),
    ]


async def test_a_streamed_text_comes_in_the_events_of_the_sdk() -> None:
    async with ModelApiServer(Scripted(TEXT)) as server, client_of(server) as client:
        streamed = await events(client)
    assert types(streamed) == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [event.sequence_number for event in streamed] == list(range(len(streamed)))
    deltas = [each.delta for each in streamed if each.type == "response.output_text.delta"]
    assert "".join(deltas) == streamed[-1].response.output_text == TEXT
    assert len(deltas) > 10


async def test_calls_are_streamed_with_their_arguments_in_pieces() -> None:
    script = Scripted(Reply("Let me see.", CALLS))
    async with ModelApiServer(script) as server, client_of(server) as client:
        streamed = await events(client, tools=TOOLS)
    added = [each.item for each in streamed if each.type == "response.output_item.added"]
    done = [each.item for each in streamed if each.type == "response.output_item.done"]
    assert [each.type for each in added] == ["message", "function_call", "function_call"]
    assert [(each.call_id, each.name, each.arguments) for each in done[1:]] == [
        (call.id, call.name, call.arguments) for call in CALLS
    ]
    for at, call in enumerate(CALLS, start=1):
        pieces = [
            each.delta
            for each in streamed
            if each.type == "response.function_call_arguments.delta" and each.output_index == at
        ]
        assert "".join(pieces) == call.arguments


@pytest.mark.parametrize(
    "reply",
    [
        Reply(TEXT, CALLS, thoughts="Hm."),
        Reply(""),
        Reply(refusal="I may not."),
        Reply("Half a", finish_reason="length"),
        Reply("", finish_reason="length", thoughts="Long, long thoughts."),
        Reply("", finish_reason="content_filter"),
        Reply("", finish_reason="failed"),
    ],
)
async def test_every_event_fits_the_types_of_the_sdk(reply: Reply) -> None:
    async with ModelApiServer(Scripted(reply)) as server, client_of(server) as client:
        server.faults.add(Quirk.REASONING, times=1)
        for _ in range(2):
            streamed = await events(client, tools=TOOLS, **ENCRYPTED)
            for event in streamed:
                _EVENT.validate_python(event.model_dump(by_alias=True), strict=True)


@pytest.mark.parametrize(
    ("reply", "status", "reason"),
    [
        (Reply("Done."), "completed", None),
        (Reply("Half a", finish_reason="length"), "incomplete", "max_output_tokens"),
        (Reply("", finish_reason="content_filter"), "incomplete", "content_filter"),
        (Reply("", finish_reason="failed"), "failed", None),
    ],
)
async def test_status_and_last_event_say_how_an_answer_ended(
    reply: Reply, status: str, reason: str | None
) -> None:
    async with ModelApiServer(Scripted(reply)) as server, client_of(server) as client:
        whole = await answer(client)
        last = (await events(client))[-1]
    for response in (whole, last.response):
        details = response.incomplete_details
        assert (response.status, details and details.reason) == (status, reason)
    assert last.type == f"response.{status}"
    assert (whole.error is not None) == (status == "failed")


async def test_long_thoughts_may_leave_no_text() -> None:
    script = Scripted(Reply("", finish_reason="length", thoughts="Hm. " * 100))
    async with ModelApiServer(script) as server, client_of(server) as client:
        response = await answer(client)
    assert [each.type for each in response.output] == ["reasoning"]
    assert response.usage is not None
    thought = response.usage.output_tokens_details.reasoning_tokens
    assert response.usage.output_tokens == thought == 100


async def test_thoughts_are_encrypted_when_included_and_taken_back() -> None:
    script = Scripted()
    script.then(Reply(tool_calls=CALLS, thoughts="Two tools."), "Fine.")
    async with ModelApiServer(script) as server, client_of(server) as client:
        first = await answer(client, tools=TOOLS, **ENCRYPTED)
        sent = [entry.model_dump(exclude_none=True) for entry in first.output]
        outputs = [
            {"type": "function_call_output", "call_id": call.id, "output": "4"} for call in CALLS
        ]
        entries = [{"role": "user", "content": "hello"}, *sent, *outputs]
        second = await answer(client, tools=TOOLS, input=entries, **ENCRYPTED)
    assert isinstance(first.output[0], ResponseReasoningItem)
    assert first.output[0].encrypted_content
    assert second.output_text == "Fine."
    messages = server.log.chats[1].messages
    assert [message.role for message in messages] == ["user", "assistant", "tool", "tool"]
    assert messages[1].tool_calls == CALLS


async def test_usage_has_cached_and_reasoning_tokens_in_both_dialects() -> None:
    script = Scripted(Reply("Four.", thoughts="Two and two make four.", cached_tokens=4))
    async with ModelApiServer(script) as server, client_of(server) as client:
        response = await answer(client)
        last = (await events(client))[-1].response
        completion = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hello"}]
        )
    assert response.usage is not None
    assert response.usage == last.usage
    assert response.usage.input_tokens_details.cached_tokens == 4
    assert response.usage.output_tokens_details.reasoning_tokens == 5
    assert response.usage.output_tokens == 6
    assert completion.usage is not None
    assert completion.usage.completion_tokens == 6
    assert completion.usage.prompt_tokens_details is not None
    assert completion.usage.completion_tokens_details is not None
    assert completion.usage.prompt_tokens_details.cached_tokens == 4
    assert completion.usage.completion_tokens_details.reasoning_tokens == 5


async def test_a_structured_answer_is_asked_for_in_text_format() -> None:
    schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    form = {"type": "json_schema", "name": "answer", "strict": True, "schema": schema}
    async with ModelApiServer(Scripted("{}")) as server, client_of(server) as client:
        response = await answer(client, text={"format": form}, reasoning={"effort": "low"})
    assert response.output_text == "{}"
    [chat] = server.log.chats
    assert (chat.response_format, chat.effort) == ("json_schema", "low")
