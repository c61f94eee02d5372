"""A request that api.openai.com would refuse is refused, and the parameter at fault is named.

The words of all servers are checked by the tests of `bot.features.check`.
"""

from collections.abc import Mapping, Sequence

import openai
import pytest

from tests.servers.model_api import Dialect, ModelApiServer, Scripted
from tests.servers.model_api.bodies import schema_complaint
from tests.servers.model_api_client import client_of
from tests.servers.openai_models import refused_by_openai
from tests.servers.profiles import GROQ

Json = Mapping[str, object]
Row = tuple[Json, str | None]
"""A body without its constant fields, and the parameter that the refusal names."""

SYSTEM: Json = {"role": "system", "content": "Be kind."}
USER: Json = {"role": "user", "content": "hello"}
ASSISTANT: Json = {"role": "assistant", "content": "hi"}


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
        for body, param in rows:
            given = {"model": "m", **common, **body}
            try:
                await client.post(path, body=given, cast_to=object)
            except openai.APIStatusError as error:
                if error.param != param or server.log.refusals[-1].message not in error.message:
                    wrong.append((body, error.message, error.param))
            else:
                wrong.append((body, "accepted"))
    assert [chat.request for chat in server.log.calls if chat.request] == []
    return wrong


CHAT: list[Row] = [
    ({"model": ""}, "model"),
    (said(), "messages"),
    (said({"role": "narrator", "content": "x"}), "messages[0].role"),
    (said({**USER, "content": None}), "messages[0].content"),
    (said({**USER, "name": "Ann Smith"}), "messages[0].name"),
    (said(USER, {**ASSISTANT, "reasoning_content": "hm"}), "messages[1].reasoning_content"),
    (said(USER, {**ASSISTANT, "tool_calls": []}), "messages[1].tool_calls"),
    (said(USER, result("a")), "messages[1].role"),
    (said(USER, calling("a", "b"), result("a"), USER), "messages"),
    (said(USER, calling("b"), result("b"), result("b")), "messages[3].tool_call_id"),
    ({"tools": [tool("two words")]}, "tools[0].function.name"),
    ({"tools": [tool(), tool()]}, "tools"),
    ({"tools": [tool(strict=True)]}, "tools[0].function.parameters"),
    ({"tools": [tool()], "tool_choice": "some"}, "tool_choice"),
    ({"tool_choice": "auto"}, "tool_choice"),
    ({"parallel_tool_calls": False}, "parallel_tool_calls"),
    ({"stream_options": {"include_usage": True}}, "stream_options"),
    ({"response_format": {"type": "json_object"}}, "messages"),
    ({"temperature": 3}, "temperature"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"top_k": 5}, "top_k"),
]
TEMPLATES: list[Row] = [
    (said(USER, SYSTEM, USER), "messages"),
    (said(SYSTEM, USER, USER), "messages"),
    (said(SYSTEM), "messages"),
    (said(USER, ASSISTANT), "messages"),
    (said(USER, calling("a"), result("a"), USER), "messages"),
]
CALL: Json = {"type": "function_call", "call_id": "call_a", "name": "sum", "arguments": "{}"}
OUTPUT: Json = {"type": "function_call_output", "call_id": "call_a", "output": "4"}
TOOL: Json = {"type": "function", "name": "sum", "parameters": {"type": "object"}, "strict": False}
THOUGHTS: Json = {"type": "reasoning", "id": "rs_1", "summary": []}
FORGED: Json = {**THOUGHTS, "encrypted_content": "gAAAAAforged"}


def entries(*more: Json) -> Json:
    return {"input": [USER, *more]}


RESPONSES: list[Row] = [
    ({"input": ""}, "input"),
    ({"max_tokens": 100}, "max_tokens"),
    ({"store": "no"}, "store"),
    ({"stream": "yes"}, "stream"),
    ({"temperature": 2.5}, "temperature"),
    ({"previous_response_id": "resp_1"}, "previous_response_id"),
    ({"tool_choice": "required"}, "tool_choice"),
    ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
    ({"instructions": "Be kind.", "input": [SYSTEM, USER]}, "input"),
    ({"reasoning": {"effort": "huge"}}, "reasoning.effort"),
    ({"text": {"format": {"type": "json_object"}}}, "input"),
    ({"max_output_tokens": 15}, "max_output_tokens"),
    ({"tools": [TOOL, TOOL]}, "tools"),
    ({"tools": [{**TOOL, "strict": True}]}, "tools[0].parameters"),
    (entries(OUTPUT, CALL), "input"),
    (entries(CALL), "input"),
    (entries({**CALL, "id": "call_a"}, OUTPUT), "input[1].id"),
    (entries(THOUGHTS), "input"),
    ({"store": False, **entries(THOUGHTS, CALL, OUTPUT)}, "input"),
    ({"store": False, **entries(FORGED, CALL, OUTPUT)}, None),
]
NO_TEXTS: tuple[object, ...] = ("", [], ["a", ""], ["x"] * 2049, ["four", "fiver"])
HALF = said(USER, calling("a", arguments='{"expression": '), result("a"))


async def test_a_bad_request_is_refused_and_its_parameter_named() -> None:
    short, reading = Dialect(embedding_tokens=4, count_tokens=len), Dialect(reads_arguments=True)
    lenient = Dialect(strict_templates=False)
    assert await refusals(CHAT, said(USER), "/chat/completions", lenient) == []
    assert await refusals(TEMPLATES, {}, "/chat/completions", Dialect()) == []
    assert await refusals([(HALF, "messages")], {}, "/chat/completions", reading) == []
    assert await refusals(RESPONSES, {"input": [USER]}, "/responses", Dialect()) == []
    rows: list[Row] = [({"input": texts}, None) for texts in NO_TEXTS]
    assert await refusals(rows, {}, "/embeddings", short) == []


FUNCTIONS: Json = {"tools": [tool("sum")]}
EFFORT = "reasoning_effort"
OPENAI_REFUSES: list[Row] = [
    ({"model": "gpt-5.6-luna", **FUNCTIONS}, EFFORT),
    ({"model": "gpt-6.1-nova", **FUNCTIONS, EFFORT: "low"}, EFFORT),
    ({"model": "gpt-5.5", **FUNCTIONS, EFFORT: "low"}, EFFORT),
    ({"model": "gpt-5.6-luna", EFFORT: "minimal"}, EFFORT),
    ({"model": "gpt-5.6-luna", "temperature": 0.2}, "temperature"),
    ({"model": "gpt-5-mini", "max_tokens": 100}, "max_tokens"),
    ({"model": "gpt-4.1-mini", EFFORT: "low"}, EFFORT),
    ({"model": "gpt-5.3-codex"}, "model"),
]


async def test_openais_models_refuse_what_the_service_refuses() -> None:
    """What they take, the turns of `test_turns` show; the same of Groq over the Responses API."""
    dialect = Dialect(server="OpenAI", refuses=refused_by_openai)
    assert await refusals(OPENAI_REFUSES, said(USER), "/chat/completions", dialect) == []
    minimal: Json = {"model": "gpt-5.6-luna", "tools": [TOOL], "reasoning": {"effort": "minimal"}}
    rows: list[Row] = [(minimal, "reasoning.effort")]
    assert await refusals(rows, {"input": [USER]}, "/responses", dialect) == []


async def test_groq_refuses_store_over_chat_completions() -> None:
    assert await refusals([({"store": False}, None)], said(USER), "/chat/completions", GROQ) == []


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"model": "\\ud800"}', b"\xff"])
async def test_a_body_that_is_no_json_is_refused(body: bytes) -> None:
    async with ModelApiServer(Scripted()) as server, client_of(server) as client:
        with pytest.raises(openai.BadRequestError, match="could not parse the JSON body"):
            await client.post("/chat/completions", content=body, cast_to=object)


TEXT = {"type": "string"}
INNER = {"type": "object", "properties": {"b": TEXT}, "additionalProperties": False}
SCHEMAS: list[tuple[Json, bool, str]] = [
    ({"type": ["string", "null"]}, False, ""),
    ({"enum": ["x"]}, False, ""),
    ({"type": "object", "properties": []}, False, "'properties' must be an object"),
    ({"type": "text"}, False, "['text'] is no type"),
    ({"type": "array"}, False, "an array needs items"),
    ({"type": "array", "items": 3}, False, "3 is no schema"),
    ({"anyOf": [{"type": "any"}]}, False, "['any'] is no type"),
    ({"type": "string", "default": "x"}, True, "'default' is not permitted"),
    ({"enum": ["x"]}, True, "a type is needed"),
    (INNER, True, "an object must be closed and require all its properties"),
    ({**INNER, "required": ["b"]}, True, ""),
    ({"anyOf": [TEXT, {"type": "null"}]}, True, ""),
]


def test_a_schema_is_checked_to_its_leaves_and_a_strict_one_is_closed() -> None:
    for inner, is_strict, complaint in SCHEMAS:
        closed = {"type": "object", "required": ["a"], "additionalProperties": False}
        schema = {**closed, "properties": {"a": inner}}
        assert schema_complaint(schema, strict=is_strict) == complaint
    assert schema_complaint({}, strict=False) == "the root must be an object"
