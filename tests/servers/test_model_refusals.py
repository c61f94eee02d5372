"""What api.openai.com refuses over both APIs, and what other servers refuse in addition."""

from collections.abc import Mapping, Sequence

import openai
import pytest

from tests.servers.model_api import Dialect, ModelApiServer, Scripted
from tests.servers.model_api.schemas import schema_complaint
from tests.servers.model_api_client import client_of

Json = Mapping[str, object]
Row = tuple[Json, str, str | None]
"""A body without its constant fields, the beginning of the refusal, and the parameter it names."""

SYSTEM: Json = {"role": "system", "content": "Be kind."}
USER: Json = {"role": "user", "content": "hello"}
ASSISTANT: Json = {"role": "assistant", "content": "hi"}
LENIENT = Dialect(strict_templates=False)
CLOSED = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


def calling(*ids: str, arguments: str = "{}") -> Json:
    function = {"name": "calculate", "arguments": arguments}
    calls = [{"id": call_id, "type": "function", "function": function} for call_id in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(call_id: str) -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": "4"}


def tool(name: str = "calculate", parameters: object = None, **more: object) -> Json:
    given = {"parameters": {"type": "object"} if parameters is None else parameters}
    return {"type": "function", "function": {"name": name, **given, **more}}


def said(*messages: Json) -> Json:
    return {"messages": messages}


async def refusals(rows: Sequence[Row], common: Json, path: str, dialect: Dialect) -> list[object]:
    """Return the rows that the server does not refuse as they say."""
    wrong: list[object] = []
    async with ModelApiServer(Scripted(), dialect=dialect) as server, client_of(server) as client:
        for row in rows:
            given = {"model": "m", **common, **row[0]}
            body = {name: value for name, value in given.items() if value is not None}
            try:
                await client.post(path, body=body, cast_to=object)
            except openai.APIStatusError as error:
                text = server.log.refusals[-1].message
                is_same = (text[: len(row[1])], error.param) == row[1:]
                if not is_same or text not in error.message:
                    wrong.append((row, text, error.message, error.param))
            else:
                wrong.append((row, "accepted"))
    assert [chat.request for chat in server.log.calls if chat.request] == []
    return wrong


ORPHAN = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message"
UNANSWERED = "An assistant message with 'tool_calls' must be followed by tool messages"
NOT_FOUND = "Invalid parameter: 'tool_call_id' of 'b' not found"
TWO_WORDS, LONG_NAME, TEXT = tool("two words"), tool("x" * 65), {"type": "string"}
CHOICE = {"type": "function", "function": {"name": "other"}}
ARRAY = {"name": "facts", "strict": True, "schema": {"type": "array"}}
CHAT: list[Row] = [
    ({"model": None}, "Missing required parameter", "model"),
    ({"messages": None}, "Missing required parameter", "messages"),
    (said(), "Invalid 'messages': empty array.", "messages"),
    (said({"role": "narrator", "content": "x"}), "Invalid value: 'narrator'.", "messages[0].role"),
    (said({**USER, "content": None}), "Invalid value for 'content'", "messages[0].content"),
    (said(USER, {**ASSISTANT, "content": None}), "Invalid value for", "messages[1].content"),
    (said({**USER, "content": 4}), "Invalid value for 'messages[0].", "messages[0].content"),
    (said({**USER, "name": "Ann Smith"}), "Invalid 'messages[0].name'", "messages[0].name"),
    (said(USER, {**ASSISTANT, "reasoning_content": "hm"}),
     "Unknown parameter: 'messages[1].re", "messages[1].reasoning_content"),
    (said(USER, {**ASSISTANT, "tool_calls": []}),
     "Invalid 'messages[1].", "messages[1].tool_calls"),
    (said(USER, result("a")), ORPHAN, "messages[1].role"),
    (said(USER, calling("a")), UNANSWERED, "messages"),
    (said(USER, calling("a", "b"), result("a"), USER), UNANSWERED, "messages"),
    (said(USER, calling("a"), result("b")), NOT_FOUND, "messages[2].tool_call_id"),
    (said(USER, calling("b"), result("b"), result("b")), NOT_FOUND, "messages[3].tool_call_id"),
    ({"tools": []}, "Invalid 'tools': empty array.", "tools"),
    ({"tools": [TWO_WORDS]}, "Invalid 'tools[0].function.name'", "tools[0].function.name"),
    ({"tools": [LONG_NAME]}, "Invalid 'tools[0].function.name'", "tools[0].function.name"),
    ({"tools": [tool(), tool()]}, "Tool names must be unique.", "tools"),
    ({"tools": [tool("other", TEXT)]},
     "Invalid schema for function 'other'", "tools[0].function.parameters"),
    ({"tools": [tool(strict=True)]},
     "Invalid schema for function 'calculate': In context=(), 'ad", "tools[0].function.parameters"),
    ({"tools": [tool()], "tool_choice": "some"}, "Invalid value: 'some'.", "tool_choice"),
    ({"tools": [tool()], "tool_choice": CHOICE}, "Tool choice 'other' not found", "tool_choice"),
    ({"tool_choice": "auto"}, "Invalid value for 'tool_choice': ", "tool_choice"),
    ({"parallel_tool_calls": False}, "Invalid value for 'parallel", "parallel_tool_calls"),
    ({"stream_options": {"include_usage": True}},
     "The 'stream_options' parameter is only", "stream_options"),
    ({"response_format": {"type": "json_object"}}, "'messages' must contain the word", "messages"),
    ({"response_format": {"type": "json_schema", "json_schema": ARRAY}},
     "Invalid schema for response_format 'facts': ", "response_format"),
    ({"temperature": 3}, "Invalid value for 'temperature'", "temperature"),
    ({"max_tokens": 0}, "Invalid value for 'max_tokens'", "max_tokens"),
    ({"top_k": 5}, "Unknown parameter: 'top_k'.", "top_k"),
]  # fmt: skip
AT_FRONT = "System message must be at the beginning."
ALTERNATE = "After the optional system message, conversation roles must"
TEMPLATES: list[Row] = [
    (said(USER, SYSTEM, USER), AT_FRONT, "messages"),
    (said(SYSTEM, USER, USER), ALTERNATE, "messages"),
    (said(USER, ASSISTANT, ASSISTANT, USER), ALTERNATE, "messages"),
    (said(SYSTEM), ALTERNATE, "messages"),
    (said(USER, ASSISTANT), "Expected last role User or Tool", "messages"),
    (said(USER, calling("a"), result("a"), USER), ALTERNATE, "messages"),
]
CALL: Json = {"type": "function_call", "call_id": "call_a", "name": "sum", "arguments": "{}"}
OUTPUT: Json = {"type": "function_call_output", "call_id": "call_a", "output": "4"}
TOOL: Json = {"type": "function", "name": "sum", "parameters": {"type": "object"}, "strict": False}
THOUGHTS: Json = {"type": "reasoning", "id": "rs_1", "summary": []}
FORGED: Json = {**THOUGHTS, "encrypted_content": "gAAAAAforged"}
SUMMARY = [{"type": "summary_text"}]


def entries(*more: Json, **fields: object) -> Json:
    return {"input": [USER, *more, *([fields] if fields else [])]}


RESPONSES: list[Row] = [
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
    ({"text": {"format": {"type": "json_schema", "name": "a"}}},
     "Missing required parameter: 'text.format.schema'.", "text.format.schema"),
    ({"text": {"format": {"type": "json_object"}}},
     "Response input messages must contain", "input"),
    ({"include": ["thoughts"]}, "Invalid value: 'thoughts'.", "include[0]"),
    ({"max_output_tokens": 15},
     "Invalid 'max_output_tokens': integer below minimum value.", "max_output_tokens"),
    ({"temperature": 2.5}, "Invalid 'temperature'", "temperature"),
    ({"stream_options": {"include_obfuscation": False}},
     "The 'stream_options' parameter", "stream_options"),
    ({"store": False, "previous_response_id": "resp_1"},
     "Previous response with id 'resp_1' not found.", "previous_response_id"),
    ({"tool_choice": "required"},
     "Tool choice 'required' must be specified with 'tools'", "tool_choice"),
    ({"tools": [TOOL], "tool_choice": {"type": "function", "name": "other"}},
     "Tool choice 'function' not found in 'tools' parameter: other.", "tool_choice"),
    ({"tools": [TOOL, TOOL]}, "Tool names must be unique.", "tools"),
    ({"tools": [{**TOOL, "strict": True}]},
     "Invalid schema for function 'sum'", "tools[0].parameters"),
    ({"tools": [{**TOOL, "parameters": {"type": "text"}}]},
     "Invalid schema for function 'sum'", "tools[0].parameters"),
    ({"tools": [{"type": "function", "function": {"name": "sum"}}]},
     "Missing required parameter: 'tools[0].name'.", "tools[0].name"),
    (entries(type="thought"), "Invalid value: 'thought'.", "input[1].type"),
    (entries(role="tool", content="4"), "Invalid value: 'tool'.", "input[1].role"),
    (entries(role="assistant", content=[{"type": "input_text", "text": "hi"}]),
     "Invalid value: 'input_text'.", "input[1].content[0]"),
    (entries(type="function_call", call_id="a", name="sum"),
     "Missing required parameter: 'input[1].arguments'.", "input[1].arguments"),
    (entries(type="reasoning", id="rs_1"),
     "Missing required parameter: 'input[1].summary'.", "input[1].summary"),
    (entries(type="reasoning", id="rs_1", summary=SUMMARY),
     "Missing required parameter: 'input[1].summary[0].text'.", "input[1].summary[0].text"),
    (entries(OUTPUT), "No tool call found for function call output with call_id call_a.", "input"),
    (entries(OUTPUT, CALL),
     "No tool call found for function call output with call_id call_a.", "input"),
    (entries(CALL), "No tool output found for function call call_a.", "input"),
    (entries({**CALL, "id": "call_a"}, OUTPUT),
     "Invalid 'input[1].id': 'call_a'. Expected an ID that begins with 'fc'.", "input[1].id"),
    (entries(THOUGHTS),
     "Item 'rs_1' of type 'reasoning' was provided without its required following item.", "input"),
    ({"store": False, **entries(THOUGHTS, CALL, OUTPUT)},
     "Item with id 'rs_1' not found. Items are not persisted", "input"),
    ({"store": False, **entries(FORGED, CALL, OUTPUT)},
     "The encrypted content for item rs_1 could not be verified.", None),
]  # fmt: skip
NO_TEXTS: tuple[object, ...] = ("", [], ["a", ""], ["x"] * 2049)
EMBEDDINGS: list[Row] = [
    *(({"input": texts}, "'$.input' is invalid.", None) for texts in NO_TEXTS),
    ({"input": ["four", "fiver"]}, "This model's maximum context length is 4 tokens", None),
]


HALF = said(USER, calling("a", arguments='{"expression": '), result("a"))


async def test_a_bad_request_is_refused_with_the_text_and_parameter_of_the_service() -> None:
    short, reading = Dialect(embedding_tokens=4, count_tokens=len), Dialect(reads_arguments=True)
    assert await refusals(CHAT, said(USER), "/chat/completions", LENIENT) == []
    assert await refusals(TEMPLATES, {}, "/chat/completions", Dialect()) == []
    assert await refusals([(HALF, "", "messages")], {}, "/chat/completions", reading) == []
    assert await refusals(RESPONSES, {"input": [USER]}, "/responses", Dialect()) == []
    assert await refusals(EMBEDDINGS, {}, "/embeddings", short) == []


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"model": "\\ud800"}', b"\xff"])
async def test_a_body_that_is_no_json_is_refused(body: bytes) -> None:
    async with ModelApiServer(Scripted()) as server, client_of(server) as client:
        with pytest.raises(openai.BadRequestError, match="could not parse the JSON body"):
            await client.post("/chat/completions", content=body, cast_to=object)


AN_A = "In context=('properties', 'a'"
NOT_VALID = "is not valid under any of the given schemas."
INNER = {"type": "object", "properties": {"b": TEXT}}
OF_INNER = {**INNER, "additionalProperties": False}
SCHEMAS: list[tuple[Json, bool, str]] = [
    ({"type": ["string", "null"]}, False, ""),
    ({"enum": ["x"]}, False, ""),
    ({"anyOf": [{"type": "null"}]}, False, ""),
    ({"type": "object", "properties": []}, False, "), 'properties' must be an object."),
    ({"type": "text"}, False, f"), 'text' {NOT_VALID}"),
    ({"type": "array"}, False, "), array schema missing items."),
    ({"type": "array", "items": 3}, False, ", 'items'), 3 is not of type 'object', 'b"),
    ({"anyOf": [{"type": "any"}]}, False, f", 'anyOf', '0'), 'any' {NOT_VALID}"),
    ({"type": "string", "default": "x"}, True, "), 'default' is not permitted."),
    ({"oneOf": [{"type": "string"}]}, True, "), 'oneOf' is not permitted."),
    ({"enum": ["x"]}, True, "), schema must have a 'type' key."),
    (INNER, True, "), 'additionalProperties' is required"),
    ({**OF_INNER, "required": []}, True, "), 'required' is required"),
    ({**OF_INNER, "required": ["b"]}, True, ""),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, True, ""),
    ({"type": ["string", "null"], "description": "A name", "enum": ["x", None]}, True, ""),
]


def test_a_schema_is_checked_to_its_leaves_and_a_strict_one_is_closed() -> None:
    for inner, is_strict, complaint in SCHEMAS:
        schema = {**CLOSED, "properties": {"a": inner}, "required": ["a"]}
        expected = f"{AN_A}{complaint}" if complaint else ""
        assert schema_complaint(schema, strict=is_strict)[: len(expected) or None] == expected
    assert schema_complaint({}, strict=False).startswith("schema must be a JSON Schema of 'type:")
