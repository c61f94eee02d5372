"""Internal calls work with every server."""

import asyncio
import json

import pytest

from bot.model.model_errors import (
    ContextTooLong,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    NotAModel,
)
from bot.model.openai_client import ModelClient
from bot.model.structured import StructuredModel
from tests.bot.model.conftest import Logged
from tests.bot.model.internal_calls import (
    ANSWER,
    CONTENT,
    LOOSE,
    PARTS,
    SCHEMALESS,
    SHAPE,
    TASK,
    UNAWARE,
    Call,
    fill,
    modes,
    sent,
    write,
)
from tests.servers.model_api import (
    ApiError,
    ApiRequest,
    Break,
    ChatRequest,
    Dialect,
    ModelApiServer,
    Reply,
    Scripted,
    is_chat,
    rate_limited,
)


@pytest.fixture
def script() -> Scripted:
    return Scripted(ANSWER)


# What is sent


async def test_a_call_is_one_plain_request_with_a_strict_schema(
    internal: StructuredModel, server: ModelApiServer
) -> None:
    assert await fill(internal) == PARTS
    assert [chat.raw for chat in server.log.chats] == [
        {
            "model": "gpt-test",
            "messages": [{"role": "system", "content": TASK}, {"role": "user", "content": CONTENT}],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "answer", "strict": True, "schema": SHAPE.schema},
            },
            "temperature": 0,
        }
    ]


async def test_a_shape_that_strict_mode_cannot_describe_uses_json_mode(
    internal: StructuredModel, server: ModelApiServer, script: Scripted
) -> None:
    parts = {"state": PARTS["state"], "amounts": {"amounts": {"tea": 2}}}
    script.then(json.dumps(parts))
    assert await fill(internal, LOOSE) == parts
    await fill(internal)
    assert modes(server) == ["json_object+", "json_schema"]


async def test_the_log_has_tokens_mode_and_time_of_a_call_but_no_text(
    internal: StructuredModel, logged: Logged
) -> None:
    await fill(internal)
    line = logged[0]
    assert (line["event"], line["mode"]) == ("internal call answered", "json_schema")
    for count in ("prompt_tokens", "completion_tokens", "seconds"):
        assert isinstance(line[count], int | float)
        assert line[count]
    assert "Ann" not in str(logged)


# Parts that servers refuse

FORMATLESS = Dialect(response_formats=frozenset())
WARM = Dialect(unsupported=frozenset({"temperature"}))
SPARSE = Dialect(unsupported=frozenset({"temperature", "response_format"}))


@pytest.mark.parametrize(
    ("dialect", "mode", "refusals"),
    [
        (Dialect(), "json_schema", 0),
        (SCHEMALESS, "json_object+", 1),
        (FORMATLESS, "text+", 2),
        (UNAWARE, "text+", 2),
        (WARM, "json_schema", 1),
        (SPARSE, "text+", 3),
    ],
    ids=["all", "no schema", "no formats", "no response_format", "no temperature", "none"],
)
async def test_a_part_that_a_server_refuses_is_left_out_from_then_on(
    internal: StructuredModel, server: ModelApiServer, dialect: Dialect, mode: str, refusals: int
) -> None:
    server.dialect = dialect
    assert await fill(internal) == PARTS
    assert await fill(internal) == PARTS
    assert modes(server) == [mode] * 2
    assert len(server.log.refusals) == refusals
    steady = [None if "temperature" in dialect.unsupported else 0] * 2
    assert sent(server, "temperature") == steady


async def test_a_server_that_knows_only_schemas_keeps_getting_them(
    internal: StructuredModel, server: ModelApiServer
) -> None:
    """Like LM Studio: a shape for JSON mode must not change how strict shapes are asked for."""
    server.dialect = Dialect(response_formats=frozenset({"json_schema"}))
    await fill(internal, LOOSE)
    await fill(internal)
    assert modes(server) == ["text+", "json_schema"]


@pytest.mark.parametrize("status", [400, 404, 422])
@pytest.mark.parametrize("takes", ["json_schema", "json_object", "text"])
async def test_a_refusal_that_names_nothing_is_taken_for_one_of_the_format(
    internal: StructuredModel, server: ModelApiServer, status: int, takes: str
) -> None:
    def is_too_much(request: ApiRequest) -> bool:
        formats = ["json_schema", "json_object", "text"]
        asked = request.response_format if isinstance(request, ChatRequest) else takes
        return formats.index(asked) < formats.index(takes)

    server.faults.add(ApiError(status, "Bad request"), times=None, when=is_too_much)
    assert await fill(internal) == PARTS
    server.faults.clear()
    await fill(internal)
    assert {mode.strip("+") for mode in modes(server)[-2:]} == {takes}
    assert sent(server, "temperature")[-1] == 0


async def test_a_temperature_refused_without_a_reason_is_left_out_last(
    internal: StructuredModel, server: ModelApiServer
) -> None:
    refusal = ApiError(400, "Bad request")
    server.faults.add(refusal, times=None, when=lambda request: "temperature" in request.raw)
    assert await fill(internal) == PARTS
    assert await fill(internal) == PARTS
    assert len(server.log.chats) == 4 + 1


@pytest.mark.parametrize(
    ("refusal", "expected", "calls"),
    [
        (ApiError(401, "Incorrect API key"), ModelRefused, 1),
        (ApiError(402, "Insufficient credits"), ModelRefused, 1),
        (ApiError(400, "Too much.", code="context_length_exceeded"), ContextTooLong, 1),
        (ApiError(400, "The prompt was filtered"), ModelRefused, 4),
        (rate_limited(0.01), ModelUnavailable, 2),
    ],
    ids=lambda value: value.message if isinstance(value, ApiError) else "",
)
async def test_a_refusal_of_every_form_is_raised_and_not_remembered(
    internal: StructuredModel,
    server: ModelApiServer,
    refusal: ApiError,
    expected: type[ModelError],
    calls: int,
) -> None:
    server.faults.add(refusal, times=None)
    with pytest.raises(ModelError) as caught:
        await fill(internal)
    assert type(caught.value) is expected
    assert len(server.log.chats) == calls
    server.faults.clear()
    await fill(internal)
    assert modes(server)[-1] == "json_schema"
    assert sent(server, "temperature")[-1] == 0


async def test_parallel_calls_all_find_the_form_that_the_server_takes(
    internal: StructuredModel, server: ModelApiServer
) -> None:
    server.dialect = SPARSE
    assert await asyncio.gather(*(fill(internal) for _ in range(3))) == [PARTS] * 3


# Servers that give no answer


@pytest.mark.parametrize("call", [fill, write])
@pytest.mark.parametrize(
    ("fault", "error"), [(Break.HTML, NotAModel), (Break.HANG, ModelUnavailable)]
)
async def test_a_page_is_asked_for_once_and_a_silent_server_until_the_time_limit(
    client: ModelClient, server: ModelApiServer, call: Call, fault: Break, error: type[ModelError]
) -> None:
    server.faults.add(fault, times=None if fault is Break.HANG else 1, when=is_chat)
    timeout_s = 0.2 if fault is Break.HANG else 60
    with pytest.raises(error):
        await call(StructuredModel(client, "gpt-test", timeout_s=timeout_s))


async def test_the_time_limit_covers_both_tries(
    client: ModelClient, script: Scripted, server: ModelApiServer
) -> None:
    script.then(*(Reply(text, delay_s=0.6) for text in ("No.", ANSWER)))
    with pytest.raises(ModelUnavailable):
        await fill(StructuredModel(client, "gpt-test", timeout_s=1))
    assert server.log.chats
