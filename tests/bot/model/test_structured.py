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
from tests.bot.model.conftest import Logged
from tests.bot.model.internal_calls import (
    ANSWER,
    CONTENT,
    EACH_API,
    LOOSE,
    PARTS,
    SCHEMALESS,
    SHAPE,
    TASK,
    UNAWARE,
    Call,
    Internal,
    fill,
    write,
)
from tests.servers.model_api import (
    ApiError,
    ApiRequest,
    Break,
    ChatRequest,
    Dialect,
    Reply,
    is_chat,
    rate_limited,
)

# What is sent


async def test_a_call_is_one_plain_request_with_a_strict_schema(internal: Internal) -> None:
    assert await internal.fill() == PARTS
    assert [chat.raw for chat in internal.chats] == [
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


@EACH_API
async def test_a_shape_that_strict_mode_cannot_describe_uses_json_mode(internal: Internal) -> None:
    parts = {"state": PARTS["state"], "amounts": {"amounts": {"tea": 2}}}
    internal.script.then(json.dumps(parts))
    assert await internal.fill(LOOSE) == parts
    await internal.fill()
    assert internal.modes == ["json_object+", "json_schema"]


async def test_the_log_has_tokens_mode_and_time_of_a_call_but_no_text(
    internal: Internal, logged: Logged
) -> None:
    await internal.fill()
    line = logged[0]
    assert (line["event"], line["mode"]) == ("internal call answered", "json_schema")
    for count in ("prompt_tokens", "completion_tokens", "seconds"):
        assert isinstance(line[count], int | float)
        assert line[count]
    assert "Ann" not in str(logged)


# Parts that servers refuse

FORMATLESS = Dialect(response_formats=frozenset())
WARM = Dialect(unsupported=frozenset({"temperature"}))
SPARSE = Dialect(unsupported=frozenset({"temperature", "response_format", "text"}))


@EACH_API
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
    internal: Internal, dialect: Dialect, mode: str, refusals: int
) -> None:
    internal.server.dialect = dialect
    assert await internal.fill() == PARTS
    assert await internal.fill() == PARTS
    assert internal.modes == [mode] * 2
    assert len(internal.server.log.refusals) == refusals
    steady = [None if "temperature" in dialect.unsupported else 0] * 2
    assert internal.sent("temperature") == steady


async def test_a_server_that_knows_only_schemas_keeps_getting_them(internal: Internal) -> None:
    """Like LM Studio: a shape for JSON mode must not change how strict shapes are asked for."""
    internal.server.dialect = Dialect(response_formats=frozenset({"json_schema"}))
    await internal.fill(LOOSE)
    await internal.fill()
    assert internal.modes == ["text+", "json_schema"]


@pytest.mark.parametrize(
    ("status", "takes"), [(400, "json_object"), (404, "text"), (422, "json_schema"), (422, "text")]
)
async def test_a_refusal_that_names_nothing_is_taken_for_one_of_the_format(
    internal: Internal, status: int, takes: str
) -> None:
    def is_too_much(request: ApiRequest) -> bool:
        formats = ["json_schema", "json_object", "text"]
        asked = request.response_format if isinstance(request, ChatRequest) else takes
        return formats.index(asked) < formats.index(takes)

    internal.server.faults.add(ApiError(status, "Bad request"), times=None, when=is_too_much)
    assert await internal.fill() == PARTS
    internal.server.faults.clear()
    await internal.fill()
    assert {mode.strip("+") for mode in internal.modes[-2:]} == {takes}
    assert internal.sent("temperature")[-1] == 0


async def test_a_temperature_refused_without_a_reason_is_left_out_last(internal: Internal) -> None:
    internal.server.faults.add(
        ApiError(400, "Bad request"), times=None, when=lambda request: "temperature" in request.raw
    )
    assert await internal.fill() == PARTS
    assert await internal.fill() == PARTS
    assert len(internal.chats) == 4 + 1


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
    internal: Internal, refusal: ApiError, expected: type[ModelError], calls: int
) -> None:
    internal.server.faults.add(refusal, times=None)
    with pytest.raises(ModelError) as caught:
        await internal.fill()
    assert type(caught.value) is expected
    assert len(internal.chats) == calls
    internal.server.faults.clear()
    await internal.fill()
    assert internal.modes[-1] == "json_schema"
    assert internal.sent("temperature")[-1] == 0


async def test_parallel_calls_all_find_the_form_that_the_server_takes(internal: Internal) -> None:
    internal.server.dialect = SPARSE
    assert await asyncio.gather(*(internal.fill() for _ in range(3))) == [PARTS] * 3


# Servers that give no answer


@pytest.mark.parametrize("call", [fill, write])
@pytest.mark.parametrize(
    ("fault", "error"), [(Break.HTML, NotAModel), (Break.HANG, ModelUnavailable)]
)
async def test_a_page_is_asked_for_once_and_a_silent_server_until_the_time_limit(
    internal: Internal, call: Call, fault: Break, error: type[ModelError]
) -> None:
    internal.server.faults.add(fault, times=None if fault is Break.HANG else 1, when=is_chat)
    with pytest.raises(error):
        await call(internal.model(timeout_s=0.2 if fault is Break.HANG else 60))


async def test_the_time_limit_covers_both_tries(internal: Internal) -> None:
    internal.script.then(*(Reply(text, delay_s=0.6) for text in ("No.", ANSWER)))
    with pytest.raises(ModelUnavailable):
        await fill(internal.model(timeout_s=1))
    assert internal.chats
