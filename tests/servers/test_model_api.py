"""The local model server answers over both APIs as the SDK expects.

What it answers in pieces, and its faults, the tests of `bot.model` would miss.
"""

from typing import Any

import pytest
from openai import AsyncOpenAI
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from memory.behaviors.steps import ToolCall
from tests.servers.model_api import ModelApiServer, Quirk, Reply, Scripted
from tests.servers.model_api_client import client_of

TEXT = "A longer answer,\n\n with  blanks, 日本語の長い言葉が続くのですよ and a 🙂 at its end. "
CALLS = (
    ToolCall("call_a", "calculate", '{"expression": "(1 + 2) * 3 / 4"}'),
    ToolCall("call_b", "current_time", "{}"),
)
SCHEMA: dict[str, object] = {"type": "object", "properties": {"it": {"type": "string"}}}
TOOLS = [
    {"type": "function", "strict": False, "name": call.name, "parameters": SCHEMA} for call in CALLS
]
ENCRYPTED: dict[str, Any] = {"store": False, "include": ["reasoning.encrypted_content"]}
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


async def respond(client: AsyncOpenAI, text: object = "hello", **more: Any) -> Response:
    response = await client.responses.create(model="m", **{"input": text, **more})
    assert isinstance(response, Response)
    Response.model_validate(response.model_dump(by_alias=True))
    return response


async def events(client: AsyncOpenAI, **more: Any) -> list[Any]:
    """Return the events of a streamed response; each fits the types of the SDK."""
    asked: dict[str, Any] = {"input": "hello", "stream": True, **more}
    found = [event async for event in await client.responses.create(model="m", **asked)]
    for event in found:
        EVENT.validate_python(event.model_dump(by_alias=True), strict=True)
    assert [event.sequence_number for event in found] == list(range(len(found)))
    return found


@pytest.mark.parametrize(
    ("reply", "status", "reason"),
    [
        (Reply(TEXT, CALLS, thoughts="Hm."), "completed", None),
        (Reply(""), "completed", None),
        (Reply(refusal="I may not."), "completed", None),
        (Reply("Half a", finish_reason="length"), "incomplete", "max_output_tokens"),
        (Reply("", finish_reason="content_filter"), "incomplete", "content_filter"),
        (Reply("", finish_reason="failed"), "failed", None),
    ],
)
async def test_status_and_last_event_say_how_a_response_ended(
    reply: Reply, status: str, reason: str | None
) -> None:
    async with ModelApiServer(Scripted(reply)) as server, client_of(server) as client:
        server.faults.add(Quirk.REASONING)
        whole = await respond(client, tools=TOOLS)
        last = (await events(client, tools=TOOLS, **ENCRYPTED))[-1]
    for response in (whole, last.response):
        details = response.incomplete_details
        assert (response.status, details and details.reason) == (status, reason)
    assert last.type == f"response.{status}"
    assert (whole.error is not None) == (status == "failed")
