"""What api.openai.com refuses, and what stricter servers refuse in addition."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import openai
import pytest

from tests.servers.model_api import Dialect, ModelApiServer, Scripted
from tests.servers.model_api.schemas import schema_complaint
from tests.servers.model_api_client import client_of

Json = Mapping[str, object]

SYSTEM: Json = {"role": "system", "content": "Be kind."}
USER: Json = {"role": "user", "content": "hello"}
ASSISTANT: Json = {"role": "assistant", "content": "hi"}
LENIENT = Dialect(strict_templates=False)


def calling(*ids: str, arguments: str = "{}") -> Json:
    function = {"name": "calculate", "arguments": arguments}
    calls = [{"id": call_id, "type": "function", "function": function} for call_id in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(call_id: str) -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": "4"}


def tool(name: str = "calculate", parameters: object = None, **more: object) -> Json:
    given = {"parameters": {"type": "object"} if parameters is None else parameters}
    return {"type": "function", "function": {"name": name, **given, **more}}


class Refusal(NamedTuple):
    message: str
    param: str | None = None
    code: str | None = None


async def refused(
    body: Json, dialect: Dialect = LENIENT, path: str = "/chat/completions"
) -> Refusal:
    """Return how the server refuses `body`; the message only as far as it is quoted."""
    async with (
        ModelApiServer(Scripted(), dialect=dialect) as server,
        client_of(server) as client,
    ):
        with pytest.raises(openai.BadRequestError) as caught:
            await client.post(path, body=body, cast_to=object)
    assert [call.request for call in server.log.calls] == [None]
    error = caught.value
    assert isinstance(error.body, dict)
    assert error.type == "invalid_request_error"
    assert [refusal.message for refusal in server.log.refusals] == [error.body["message"]]
    return Refusal(error.body["message"], error.param, error.code)


async def accepted(messages: Sequence[Json], dialect: Dialect, **more: object) -> None:
    async with (
        ModelApiServer(Scripted(), dialect=dialect) as server,
        client_of(server) as client,
    ):
        body = {"model": "m", "messages": messages, **more}
        await client.post("/chat/completions", body=body, cast_to=object)


@pytest.mark.parametrize(
    ("messages", "refusal"),
    [
        ([], Refusal("Invalid 'messages': empty array.", "messages", "empty_array")),
        (
            [{"role": "narrator", "content": "x"}],
            Refusal("Invalid value: 'narrator'.", "messages[0].role", "invalid_value"),
        ),
        (
            [{"role": "user", "content": None}],
            Refusal("Invalid value for 'content': expected a string", "messages[0].content"),
        ),
        (
            [USER, {"role": "assistant", "content": None}],
            Refusal("Invalid value for 'content': expected a string", "messages[1].content"),
        ),
        (
            [{"role": "user", "content": 4}],
            Refusal(
                "Invalid value for 'messages[0].content'", "messages[0].content", "invalid_type"
            ),
        ),
        (
            [USER, {**ASSISTANT, "reasoning_content": "hm"}],
            Refusal(
                "Unknown parameter: 'messages[1].reasoning_content'.",
                "messages[1].reasoning_content",
                "unknown_parameter",
            ),
        ),
        (
            [{**USER, "name": "Ann Smith"}],
            Refusal("Invalid 'messages[0].name'", "messages[0].name", "invalid_value"),
        ),
        (
            [USER, {**ASSISTANT, "tool_calls": []}],
            Refusal("Invalid 'messages[1].tool_calls'", "messages[1].tool_calls", "empty_array"),
        ),
    ],
)
async def test_a_malformed_message_is_refused(messages: Sequence[Json], refusal: Refusal) -> None:
    assert_says(await refused({"model": "m", "messages": messages}), refusal)


def assert_says(actual: Refusal, expected: Refusal) -> None:
    assert actual._replace(message=actual.message[: len(expected.message)]) == expected


ORPHAN = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message"
UNANSWERED = "An assistant message with 'tool_calls' must be followed by tool messages"


@pytest.mark.parametrize(
    ("messages", "refusal"),
    [
        ([USER, result("a")], Refusal(ORPHAN, "messages[1].role")),
        ([USER, ASSISTANT, result("a")], Refusal(ORPHAN, "messages[2].role")),
        ([USER, calling("a")], Refusal(UNANSWERED, "messages")),
        ([USER, calling("a"), USER], Refusal(UNANSWERED, "messages")),
        ([USER, calling("a", "b"), result("a"), USER], Refusal(UNANSWERED, "messages")),
        (
            [USER, calling("a"), result("b")],
            Refusal(
                "Invalid parameter: 'tool_call_id' of 'b' not found", "messages[2].tool_call_id"
            ),
        ),
        (
            [USER, calling("a"), result("a"), result("a")],
            Refusal(
                "Invalid parameter: 'tool_call_id' of 'a' not found", "messages[3].tool_call_id"
            ),
        ),
    ],
)
async def test_calls_and_results_must_belong_together(
    messages: Sequence[Json], refusal: Refusal
) -> None:
    assert_says(await refused({"model": "m", "messages": messages}), refusal)


async def test_a_missing_result_is_named() -> None:
    messages = [USER, calling("a", "b", "c"), result("b"), USER]
    refusal = await refused({"model": "m", "messages": messages})
    assert refusal.message.endswith("did not have response messages: a, c")


async def test_a_prompt_with_a_filtered_word_is_refused_as_azure_does() -> None:
    dialect = Dialect(strict_templates=False, filtered=frozenset({"badword"}))
    said = {"role": "user", "content": "a badword"}
    refusal = await refused({"model": "m", "messages": [SYSTEM, said]}, dialect)
    azures = "The response was filtered due to the prompt triggering Azure OpenAI's content"
    assert_says(refusal, Refusal(azures, "prompt", "content_filter"))
    await accepted([SYSTEM, USER], dialect)


ALTERNATE = Refusal("After the optional system message, conversation roles must", "messages")


@pytest.mark.parametrize(
    ("messages", "refusal"),
    [
        ([USER, SYSTEM, USER], Refusal("System message must be at the beginning.", "messages")),
        ([SYSTEM, SYSTEM, USER], Refusal("System message must be at the beginning.", "messages")),
        ([SYSTEM, USER, USER], ALTERNATE),
        ([SYSTEM, ASSISTANT, USER], ALTERNATE),
        ([USER, ASSISTANT, ASSISTANT, USER], ALTERNATE),
        ([SYSTEM], ALTERNATE),
        ([USER, ASSISTANT], Refusal("Expected last role User or Tool", "messages")),
        ([USER, calling("a"), result("a"), USER], ALTERNATE),
    ],
)
async def test_a_strict_template_wants_alternating_roles(
    messages: Sequence[Json], refusal: Refusal
) -> None:
    assert_says(await refused({"model": "m", "messages": messages}, Dialect()), refusal)
    await accepted(messages, LENIENT)


async def test_the_prompt_form_of_design_passes_the_strictest_server() -> None:
    window = [SYSTEM, USER, ASSISTANT, USER]
    run = [calling("a", "b"), result("a"), result("b"), calling("c"), result("c")]
    strictest = Dialect(reads_arguments=True)
    await accepted(window, strictest)
    await accepted(window + run, strictest, tools=[tool()], tool_choice="none")
    await accepted([*window, *run, ASSISTANT, USER], strictest)


async def test_some_servers_read_the_arguments_of_earlier_calls() -> None:
    messages = [USER, calling("a", arguments='{"expression": '), result("a")]
    reading = Dialect(reads_arguments=True)
    assert (await refused({"model": "m", "messages": messages}, reading)).param == "messages"
    await accepted(messages, LENIENT)


@pytest.mark.parametrize(
    ("more", "refusal"),
    [
        ({"tools": []}, Refusal("Invalid 'tools': empty array.", "tools", "empty_array")),
        (
            {"tools": [tool(name="two words")]},
            Refusal("Invalid 'tools[0].function.name'", "tools[0].function.name", "invalid_value"),
        ),
        (
            {"tools": [tool(name="x" * 65)]},
            Refusal(
                "Invalid 'tools[0].function.name'",
                "tools[0].function.name",
                "string_above_max_length",
            ),
        ),
        ({"tools": [tool(), tool()]}, Refusal("Tool names must be unique.", "tools")),
        (
            {"tools": [tool(), tool(name="other", parameters={"type": "string"})]},
            Refusal(
                "Invalid schema for function 'other': schema must be a JSON Schema of 'type:",
                "tools[1].function.parameters",
                "invalid_function_parameters",
            ),
        ),
        (
            {"tools": [tool(strict=True)]},
            Refusal(
                "Invalid schema for function 'calculate': In context=(), 'additionalProperties'",
                "tools[0].function.parameters",
                "invalid_function_parameters",
            ),
        ),
        (
            {"tools": [tool()], "tool_choice": "some"},
            Refusal("Invalid value: 'some'.", "tool_choice", "invalid_value"),
        ),
        (
            {
                "tools": [tool()],
                "tool_choice": {"type": "function", "function": {"name": "other"}},
            },
            Refusal("Tool choice 'other' not found in 'tools' parameter.", "tool_choice"),
        ),
        ({"tool_choice": "auto"}, Refusal("Invalid value for 'tool_choice': ", "tool_choice")),
        (
            {"parallel_tool_calls": False},
            Refusal("Invalid value for 'parallel_tool_calls': ", "parallel_tool_calls"),
        ),
        (
            {"stream_options": {"include_usage": True}},
            Refusal("The 'stream_options' parameter is only allowed when", "stream_options"),
        ),
        (
            {"response_format": {"type": "json_object"}},
            Refusal("'messages' must contain the word 'json'", "messages"),
        ),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "facts", "strict": True, "schema": {"type": "array"}},
                }
            },
            Refusal("Invalid schema for response_format 'facts': ", "response_format"),
        ),
        (
            {"temperature": 3},
            Refusal("Invalid value for 'temperature'", "temperature", "invalid_type"),
        ),
        (
            {"max_tokens": 0},
            Refusal("Invalid value for 'max_tokens'", "max_tokens", "invalid_type"),
        ),
        ({"top_k": 5}, Refusal("Unknown parameter: 'top_k'.", "top_k", "unknown_parameter")),
    ],
)
async def test_a_bad_parameter_is_refused_by_name(more: Json, refusal: Refusal) -> None:
    assert_says(await refused({"model": "m", "messages": [USER], **more}), refusal)


@pytest.mark.parametrize("missing", ["model", "messages"])
async def test_a_required_parameter_must_be_there(missing: str) -> None:
    body = {
        name: value for name, value in (("model", "m"), ("messages", [USER])) if name != missing
    }
    expected = Refusal("Missing required parameter", missing, "missing_required_parameter")
    assert_says(await refused(body), expected)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", 0.2),
        ("max_tokens", 100),
        ("max_completion_tokens", 100),
        ("parallel_tool_calls", True),
        ("response_format", {"type": "text"}),
        ("reasoning_effort", "low"),
    ],
)
async def test_a_dialect_may_refuse_a_parameter(name: str, value: object) -> None:
    refusing = Dialect(unsupported=frozenset({name}))
    body = {"model": "m", "messages": [USER], "tools": [tool()], name: value}
    expected = Refusal(f"Unsupported parameter: '{name}'", name, "unsupported_parameter")
    assert_says(await refused(body, refusing), expected)
    await accepted([USER], LENIENT, **{"tools": [tool()], name: value})


async def test_a_prompt_over_the_context_is_refused_and_one_at_it_is_not() -> None:
    def words(text: str) -> int:
        return len(text.split())

    body = {"model": "m", "messages": [{"role": "user", "content": "one two three"}]}
    counted = 3 + 1 + 3 + 3  # overhead, role, words, overhead of the answer
    refusal = await refused(body, Dialect(context_tokens=counted - 1, count_tokens=words))
    expected = Refusal(
        f"This model's maximum context length is {counted - 1} tokens. "
        f"However, your messages resulted in {counted} tokens.",
        "messages",
        "context_length_exceeded",
    )
    assert_says(refusal, expected)
    exact = Dialect(context_tokens=counted, count_tokens=words)
    await accepted([{"role": "user", "content": "one two three"}], exact)


async def test_the_tools_count_towards_the_context() -> None:
    dialect = Dialect(context_tokens=40, count_tokens=len)
    await accepted([USER], dialect)
    refusal = await refused({"model": "m", "messages": [USER], "tools": [tool()]}, dialect)
    assert refusal.code == "context_length_exceeded"


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"model": "\\ud800"}', b"\xff"])
async def test_a_body_must_be_a_json_object(body: bytes) -> None:
    async with ModelApiServer(Scripted()) as server, client_of(server) as client:
        with pytest.raises(openai.BadRequestError, match="could not parse the JSON body"):
            await client.post("/chat/completions", content=body, cast_to=object)


@pytest.mark.parametrize("key", ["sk-wrong-one", "x"])
async def test_a_wrong_key_is_refused_and_not_quoted_whole(key: str) -> None:
    dialect = Dialect(api_key="sk-right")
    async with ModelApiServer(Scripted(), dialect=dialect) as server:
        async with client_of(server, key="sk-right") as client:
            await client.models.list()
        async with client_of(server, key) as client:
            with pytest.raises(openai.AuthenticationError) as caught:
                await client.embeddings.create(model="e", input="text")
    assert (caught.value.code, f"{key}." in caught.value.message) == ("invalid_api_key", False)


async def test_an_unknown_model_or_url_is_not_found() -> None:
    dialect = Dialect(models=frozenset({"m"}))
    async with ModelApiServer(Scripted(), dialect=dialect) as server, client_of(server) as client:
        with pytest.raises(openai.NotFoundError, match="does not exist") as caught:
            await client.embeddings.create(model="e", input="text")
        assert caught.value.code == "model_not_found"
        with pytest.raises(openai.NotFoundError, match=r"Invalid URL \(GET /v1/nowhere\)"):
            await client.get("/nowhere", cast_to=object)


@pytest.mark.parametrize("texts", ["", [], ["good", ""], ["x"] * 2049])
async def test_texts_to_embed_must_not_be_empty(texts: object) -> None:
    refusal = await refused({"model": "e", "input": texts}, path="/embeddings")
    assert_says(refusal, Refusal("'$.input' is invalid."))


async def test_a_text_to_embed_has_a_maximum_length() -> None:
    dialect = Dialect(embedding_tokens=4, count_tokens=len)
    body = {"model": "e", "input": ["four", "fiver"]}
    refusal = await refused(body, dialect, path="/embeddings")
    assert_says(refusal, Refusal("This model's maximum context length is 4 tokens, however you"))


@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        ({"type": "object"}, ""),
        ({"type": "object", "properties": {"a": {"type": ["string", "null"]}}}, ""),
        ({"type": "object", "properties": {"a": {"enum": ["x"]}}}, ""),
        ({"type": "object", "properties": {"a": {"anyOf": [{"type": "null"}]}}}, ""),
        ({}, "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"None\"'."),
        ({"type": "object", "properties": []}, "In context=(), 'properties' must be an object."),
        (
            {"type": "object", "properties": {"a": {"type": "text"}}},
            "In context=('properties', 'a'), 'text' is not valid under any of the given schemas.",
        ),
        (
            {"type": "object", "properties": {"a": {"type": "array"}}},
            "In context=('properties', 'a'), array schema missing items.",
        ),
        (
            {"type": "object", "properties": {"a": {"type": "array", "items": 3}}},
            "In context=('properties', 'a', 'items'), 3 is not of type 'object', 'boolean'.",
        ),
        (
            {"type": "object", "properties": {"a": {"anyOf": [{"type": "any"}]}}},
            (
                "In context=('properties', 'a', 'anyOf', '0'), 'any' is not valid under any of the "
                "given schemas."
            ),
        ),
    ],
)
def test_a_schema_is_checked_to_its_leaves(schema: object, complaint: str) -> None:
    assert schema_complaint(schema, strict=False) == complaint


def test_a_strict_schema_requires_every_property_and_no_other() -> None:
    inner = {"type": "object", "properties": {"b": {"type": "string"}}}
    schema: dict[str, object] = {"type": "object", "properties": {"a": inner}, "required": ["a"]}
    assert "'additionalProperties'" in schema_complaint(schema, strict=True)
    schema["additionalProperties"] = False
    assert "('properties', 'a')" in schema_complaint(schema, strict=True)
    schema["properties"] = {"a": {**inner, "additionalProperties": False, "required": ["b"]}}
    assert schema_complaint(schema, strict=True) == ""
    schema["required"] = []
    assert "'required'" in schema_complaint(schema, strict=True)


@pytest.mark.parametrize(
    ("inner", "complaint"),
    [
        ({"type": "string", "default": "x"}, "'default' is not permitted."),
        ({"oneOf": [{"type": "string"}]}, "'oneOf' is not permitted."),
        ({"enum": ["x"]}, "schema must have a 'type' key."),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, ""),
        ({"type": ["string", "null"], "description": "A name", "enum": ["x", None]}, ""),
    ],
)
def test_a_strict_schema_holds_no_other_keywords(inner: Json, complaint: str) -> None:
    schema = {
        "type": "object",
        "properties": {"a": inner},
        "required": ["a"],
        "additionalProperties": False,
    }
    expected = f"In context=('properties', 'a'), {complaint}" if complaint else ""
    assert schema_complaint(schema, strict=True) == expected


@pytest.mark.parametrize("supported", ["json_object", "json_schema"])
async def test_a_dialect_may_not_support_a_format(supported: str) -> None:
    dialect = Dialect(response_formats=frozenset({supported}))
    message = {"role": "user", "content": "Answer in JSON."}
    closed = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    named = {"name": "answer", "strict": True, "schema": closed}
    formats: dict[str, Json] = {
        "json_object": {"type": "json_object"},
        "json_schema": {"type": "json_schema", "json_schema": named},
    }
    await accepted([message], dialect, response_format=formats.pop(supported))
    body = {"model": "m", "messages": [message], "response_format": formats.popitem()[1]}
    assert_says(await refused(body, dialect), Refusal("This response_format type is unavailable"))
