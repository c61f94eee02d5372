"""What the check finds out about the chat model, from a local server that can fail in many ways."""

from dataclasses import replace
from typing import Any

import pytest

from bot.features.check.chat_model import check_chat, front_was_read
from bot.model.call import ModelReply, Usage
from memory.text.tokens import TokenCounter
from tests.bot.features.check.front_reader import SMALL, FrontReader
from tests.bot.features.conftest import SettingsOf, rows_of
from tests.servers.model_api import (
    ApiError,
    Break,
    ChatRequest,
    Dialect,
    ModelApiServer,
    StreamBreak,
    rate_limited,
    server_error,
)
from tests.servers.model_api.faults import Fault
from tests.settings import Settings


@pytest.fixture
def settings(model_api: ModelApiServer, settings_of: SettingsOf) -> Any:
    return settings_of(
        openai_base_url=model_api.base_url, openai_api_key="sk-any", openai_model="local", **SMALL
    )


async def test_the_long_prompt_fills_the_budget_and_has_a_form_that_every_server_takes(
    settings: Settings, model_api: ModelApiServer
) -> None:
    counter = await TokenCounter.load()
    model_api.dialect = replace(model_api.dialect, count_tokens=counter.count)
    await rows_of(check_chat(settings))
    longest = max(
        call.prompt_tokens for call in model_api.log.calls if isinstance(call.request, ChatRequest)
    )
    room = SMALL["prompt_tokens"] - SMALL["reply_tokens"]
    assert 0.85 * room <= longest <= room


@pytest.mark.parametrize(
    ("keeps", "lost"), [(1, "the first message"), (0, "the system message and the first message")]
)
async def test_a_server_that_cuts_the_prompt_fails(
    settings: Settings, reader: FrontReader, keeps: int, lost: str
) -> None:
    reader.shown, reader.keeps = 3, keeps
    row = (await rows_of(check_chat(settings)))["Model prompt"]
    assert row.verdict == "fail"
    assert lost in row.seen
    assert "lost the beginning" in row.seen


@pytest.mark.parametrize(
    ("said", "counted", "verdict", "told"),
    [
        ("marzipan, gyroscope", 0, "ok", ""),
        ("marzipan", 0, "fail", "OLLAMA_CONTEXT_LENGTH)"),
        ("gyroscope", 300, "fail", "OLLAMA_CONTEXT_LENGTH)"),
        ("none", 900, "fail", "or try another OPENAI_MODEL"),
    ],
)
def test_the_advice_depends_on_the_tokens_that_the_server_counted(
    said: str, counted: int, verdict: str, told: str
) -> None:
    row = front_was_read(ModelReply(said, (), "stop", Usage(prompt_tokens=counted)), sent=1000)
    assert row.verdict == verdict
    assert row.advice.endswith(told)


async def test_a_model_without_tools_is_a_warning(settings: Settings, reader: FrontReader) -> None:
    reader.calls_tools = False
    row = (await rows_of(check_chat(settings)))["Model tool call"]
    assert (row.verdict, row.seen) == ("warn", "not called")


async def test_a_server_without_tools_fails(settings: Settings, model_api: ModelApiServer) -> None:
    model_api.dialect = Dialect(unsupported=frozenset({"tools"}))
    row = (await rows_of(check_chat(settings)))["Model tool call"]
    assert (row.verdict, row.seen) == (
        "fail",
        "the server refused the request (400, unsupported_parameter)",
    )


@pytest.mark.parametrize(
    ("refused", "seen"),
    [
        ((), "local takes a strict schema"),
        (("json_schema",), "local takes JSON mode but no strict schema, which is enough"),
        (
            ("json_schema", "json_object"),
            "local takes neither a JSON schema nor JSON mode, but answers in JSON if asked to",
        ),
    ],
)
async def test_the_row_says_in_which_form_the_server_takes_a_json_request(
    settings: Settings, model_api: ModelApiServer, refused: tuple[str, ...], seen: str
) -> None:
    model_api.faults.add(
        ApiError(400, "'response_format' is not supported"),
        times=None,
        when=lambda request: (
            isinstance(request, ChatRequest) and request.response_format in refused
        ),
    )
    row = (await rows_of(check_chat(settings)))["Model JSON"]
    assert (row.verdict, row.seen) == ("ok", seen)


async def test_json_is_asked_of_the_memory_model(
    settings_of: SettingsOf, model_api: ModelApiServer
) -> None:
    model_api.dialect = Dialect(models=frozenset({"local"}))
    settings = settings_of(
        openai_base_url=model_api.base_url, openai_model="local", openai_memory_model="typo"
    )
    row = (await rows_of(check_chat(settings)))["Model JSON"]
    assert (row.verdict, row.seen) == ("fail", "no such model, or no such path")
    assert row.advice.startswith("check OPENAI_MEMORY_MODEL and OPENAI_BASE_URL")


@pytest.mark.parametrize(
    ("extracts", "verdict"),
    [
        ({"favorite": {"color": 7}}, "fail"),
        ({"favorite": {"color": None}}, "warn"),
        ({"something": "else"}, "fail"),
    ],
)
async def test_json_of_another_shape_is_not_ok(
    settings: Settings, reader: FrontReader, extracts: object, verdict: str
) -> None:
    reader.extracts = extracts
    assert (await rows_of(check_chat(settings)))["Model JSON"].verdict == verdict


@pytest.mark.parametrize(
    ("fault", "seen"),
    [
        (ApiError(401, "Incorrect key: sk-any"), "the key was refused"),
        (ApiError(404, "No such model"), "no such model, or no such path"),
        (ApiError(418, "I am a teapot", kind=""), "the server refused the request (418)"),
        (rate_limited(0), "too many requests"),
        (server_error(), "the server failed (500)"),
        (Break.DROP, "the connection failed"),
        (Break.HTML, "the server there is not OpenAI-compatible"),
        (StreamBreak.CUT, "the answer broke off twice"),
    ],
)
async def test_a_model_that_does_not_answer_has_one_failed_row(
    settings: Settings, model_api: ModelApiServer, fault: Fault, seen: str
) -> None:
    model_api.faults.add(fault, times=None)
    rows = await rows_of(check_chat(settings))
    assert [(row.verdict, row.seen) for row in rows.values()] == [("fail", seen)]
    assert "sk-any" not in repr(rows)


async def test_a_silent_server_is_given_up_at_the_time_limit(
    settings_of: SettingsOf, model_api: ModelApiServer
) -> None:
    model_api.faults.add(Break.HANG, times=None)
    settings = settings_of(openai_base_url=model_api.base_url, model_timeout_s=1)
    [row] = (await rows_of(check_chat(settings))).values()
    assert row.verdict == "fail"
