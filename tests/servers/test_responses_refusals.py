"""What the Responses API refuses, with api.openai.com's texts."""

from collections.abc import Mapping
from typing import Any

import openai
import pytest

from tests.servers.model_api import Dialect, ModelApiServer, Reply, Scripted
from tests.servers.model_api_client import client_of

Json = Mapping[str, Any]

USER: Json = {"role": "user", "content": "hello"}
CALL: Json = {"type": "function_call", "call_id": "call_a", "name": "sum", "arguments": "{}"}
OUTPUT: Json = {"type": "function_call_output", "call_id": "call_a", "output": "4"}
TOOL: Json = {"type": "function", "name": "sum", "parameters": {"type": "object"}, "strict": False}


async def refused(**body: Any) -> tuple[str, str | None, str | None]:
    """Return message, parameter and code of a refusal."""
    async with ModelApiServer(Scripted()) as server, client_of(server) as client:
        asked = {"model": "m", "input": [USER], **body}
        with pytest.raises(openai.APIStatusError) as caught:
            await client.post("/responses", body=asked, cast_to=object)
    error = caught.value
    assert isinstance(error.body, dict)
    assert [refusal.message for refusal in server.log.refusals] == [error.body["message"]]
    return error.body["message"], error.param, error.code


def entry(**fields: Any) -> dict[str, Any]:
    return {"input": [USER, fields]}


@pytest.mark.parametrize(
    ("body", "message", "param"),
    [
        ({"model": None}, "Missing required parameter: 'model'.", "model"),
        ({"input": None}, "Missing required parameter: 'input'.", "input"),
        ({"frequency": 1}, "Unknown parameter: 'frequency'.", "frequency"),
        ({"max_tokens": 100}, "Unknown parameter: 'max_tokens'.", "max_tokens"),
        ({"messages": [USER]}, "Unknown parameter: 'messages'.", "messages"),
        ({"stream": "yes"}, "Invalid type for 'stream'", "stream"),
        ({"store": "no"}, "Invalid value for 'store'", "store"),
        ({"reasoning_effort": "low"}, "Unknown parameter: 'reasoning_effort'.", "reasoning_effort"),
        ({"reasoning": {"effort": "huge"}}, "Invalid value: 'huge'.", "reasoning.effort"),
        ({"text": {"format": {"type": "xml"}}}, "Invalid value: 'xml'.", "text.format.type"),
        (
            {"text": {"format": {"type": "json_schema", "name": "answer"}}},
            "Missing required parameter: 'text.format.schema'.",
            "text.format.schema",
        ),
        ({"include": ["thoughts"]}, "Invalid value: 'thoughts'.", "include[0]"),
        (entry(type="thought"), "Invalid value: 'thought'.", "input[1].type"),
        (entry(role="tool", content="4"), "Invalid value: 'tool'.", "input[1].role"),
        (
            entry(type="function_call", call_id="a", name="sum"),
            "Missing required parameter: 'input[1].arguments'.",
            "input[1].arguments",
        ),
        (
            entry(type="reasoning", id="rs_1"),
            "Missing required parameter: 'input[1].summary'.",
            "input[1].summary",
        ),
        (
            entry(type="reasoning", id="rs_1", summary=[{"type": "summary_text"}]),
            "Missing required parameter: 'input[1].summary[0].text'.",
            "input[1].summary[0].text",
        ),
        (
            {"tools": [{"type": "function", "function": {"name": "sum"}}]},
            "Missing required parameter: 'tools[0].name'.",
            "tools[0].name",
        ),
        (
            {"tools": [{**TOOL, "parameters": {"type": "text"}}]},
            "Invalid schema for function 'sum'",
            "tools[0].parameters",
        ),
    ],
)
async def test_a_body_must_fit_the_types_of_the_sdk(body: Json, message: str, param: str) -> None:
    said = await refused(**body)
    assert (said[0][: len(message)], said[1]) == (message, param)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"max_output_tokens": 15}, "Invalid 'max_output_tokens': integer below minimum value."),
        ({"temperature": 2.5}, "Invalid 'temperature'"),
        ({"stream_options": {"include_obfuscation": False}}, "The 'stream_options' parameter"),
        (
            {"store": False, "previous_response_id": "resp_1"},
            "Previous response with id 'resp_1' not found.",
        ),
        ({"text": {"format": {"type": "json_object"}}}, "Response input messages must contain"),
        ({"tool_choice": "required"}, "Tool choice 'required' must be specified with 'tools'"),
        (
            {"tools": [TOOL], "tool_choice": {"type": "function", "name": "other"}},
            "Tool choice 'function' not found in 'tools' parameter: other.",
        ),
        ({"tools": [TOOL, TOOL]}, "Tool names must be unique."),
        ({"tools": [{**TOOL, "strict": True}]}, "Invalid schema for function 'sum'"),
        (
            {"input": [USER, OUTPUT]},
            "No tool call found for function call output with call_id call_a.",
        ),
        (
            {"input": [USER, OUTPUT, CALL]},
            "No tool call found for function call output with call_id call_a.",
        ),
        ({"input": [USER, CALL]}, "No tool output found for function call call_a."),
        (
            {"input": [USER, {**CALL, "id": "call_a"}, OUTPUT]},
            "Invalid 'input[1].id': 'call_a'. Expected an ID that begins with 'fc'.",
        ),
        (
            {"input": [{"role": "assistant", "content": [{"type": "input_text", "text": "hi"}]}]},
            "Invalid value: 'input_text'.",
        ),
    ],
)
async def test_bounds_and_order_are_checked(body: Json, message: str) -> None:
    said, _, _ = await refused(**body)
    assert said[: len(message)] == message


async def test_thoughts_must_be_followed_by_their_output() -> None:
    thoughts = {"type": "reasoning", "id": "rs_1", "summary": []}
    said, param, _ = await refused(input=[USER, thoughts])
    assert (said, param) == (
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
        "input",
    )


async def test_thoughts_that_are_not_stored_must_be_sent_whole() -> None:
    thoughts = {"type": "reasoning", "id": "rs_1", "summary": []}
    said, _, _ = await refused(input=[USER, thoughts, CALL, OUTPUT], store=False)
    assert said.startswith("Item with id 'rs_1' not found. Items are not persisted")
    forged = {**thoughts, "encrypted_content": "gAAAAAforged"}
    said, _, code = await refused(input=[USER, forged, CALL, OUTPUT], store=False)
    assert said.startswith("The encrypted content for item rs_1 could not be verified.")
    assert code == "invalid_encrypted_content"


async def test_another_server_cannot_read_the_thoughts() -> None:
    script = Scripted(Reply("Fine.", thoughts="Hm."))
    asked: dict[str, Any] = {"store": False, "include": ["reasoning.encrypted_content"]}
    async with (
        ModelApiServer(script, dialect=Dialect(server="one")) as one,
        ModelApiServer(script, dialect=Dialect(server="two")) as two,
        client_of(one) as client,
        client_of(two) as other,
    ):
        first = await client.responses.create(model="m", input="hello", **asked)
        sent: Any = [entry.model_dump(exclude_none=True) for entry in first.output]
        entries: Any = [USER, *sent, USER]
        await client.responses.create(model="m", input=entries, **asked)
        with pytest.raises(openai.BadRequestError, match="could not be verified"):
            await other.responses.create(model="m", input=entries, **asked)
