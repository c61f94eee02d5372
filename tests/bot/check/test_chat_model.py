"""What is found out about the chat model, from a local server that can be bad in many ways."""

from dataclasses import replace

import pytest

from bot.check.chat_model import check_chat
from bot.check.prompt_front import front_was_read
from bot.model.call import ModelReply, Usage
from config.settings import Settings
from memory.text.tokens import TokenCounter
from tests.bot.check.conftest import SettingsOf, rows_of
from tests.bot.check.front_reader import FrontReader
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

PROMPT_TOKENS, REPLY_TOKENS = 4000, 500


@pytest.fixture
def settings(model_api: ModelApiServer, settings_of: SettingsOf) -> Settings:
    return settings_of(
        openai_base_url=model_api.base_url,
        openai_api_key="sk-any",
        openai_model="stand-in",
        prompt_tokens=PROMPT_TOKENS,
        reply_tokens=REPLY_TOKENS,
        model_timeout_s=5,
    )


async def test_a_model_in_order_has_no_failed_row(settings: Settings) -> None:
    rows = await rows_of(check_chat(settings))
    assert {row.verdict for row in rows.values()} == {"ok"}


async def test_the_long_prompt_fills_the_budget_and_passes_strict_templates(
    settings: Settings, model_api: ModelApiServer
) -> None:
    counter = await TokenCounter.load()
    model_api.dialect = replace(model_api.dialect, count_tokens=counter.count)
    await rows_of(check_chat(settings))
    longest = max(
        call.prompt_tokens for call in model_api.log.calls if isinstance(call.request, ChatRequest)
    )
    room = PROMPT_TOKENS - REPLY_TOKENS
    assert 0.85 * room <= longest <= room


@pytest.mark.parametrize(
    ("keeps", "lost"),
    [(1, "the first message"), (0, "the system message and the one in the first")],
)
async def test_a_prompt_that_a_server_cuts_fails(
    settings: Settings, reader: FrontReader, keeps: int, lost: str
) -> None:
    reader.shown, reader.keeps = 3, keeps
    row = (await rows_of(check_chat(settings)))["Model prompt"]
    assert row.verdict == "fail"
    assert lost in row.seen
    assert "did not come back" in row.seen


@pytest.mark.parametrize(
    ("said", "counted", "verdict", "told"),
    [
        ("marzipan, gyroscope", 0, "ok", ""),
        ("marzipan", 0, "fail", "OLLAMA_CONTEXT_LENGTH)"),
        ("gyroscope", 300, "fail", "OLLAMA_CONTEXT_LENGTH)"),
        ("none", 900, "fail", "or try another OPENAI_MODEL"),
    ],
)
def test_what_came_back_is_judged_beside_what_was_counted(
    said: str, counted: int, verdict: str, told: str
) -> None:
    row = front_was_read(ModelReply(said, (), "stop", Usage(prompt_tokens=counted)), sent=1000)
    assert row.verdict == verdict
    assert row.advice.endswith(told)


async def test_a_prompt_that_the_model_does_not_take_fails(
    settings: Settings, model_api: ModelApiServer
) -> None:
    model_api.dialect = Dialect(context_tokens=2000)
    row = (await rows_of(check_chat(settings)))["Model prompt"]
    assert row.verdict == "fail"
    assert row.advice.startswith("lower PROMPT_TOKENS")


async def test_a_model_that_calls_no_tools_is_warned_of(
    settings: Settings, reader: FrontReader
) -> None:
    reader.calls_tools = False
    row = (await rows_of(check_chat(settings)))["Model tool call"]
    assert (row.verdict, row.seen) == ("warn", "not called")


async def test_a_server_without_tools_fails(settings: Settings, model_api: ModelApiServer) -> None:
    model_api.dialect = Dialect(unsupported=frozenset({"tools"}))
    row = (await rows_of(check_chat(settings)))["Model tool call"]
    assert (row.verdict, row.seen) == (
        "fail",
        "the server declines such a request (400, unsupported_parameter)",
    )


@pytest.mark.parametrize(
    ("refused", "seen"),
    [
        ((), "stand-in takes a strict schema"),
        (("json_schema",), "stand-in has JSON mode and no strict schema, which will do"),
        (
            ("json_schema", "json_object"),
            "stand-in has neither JSON schema nor JSON mode; asked in words it answers so",
        ),
    ],
)
async def test_the_row_says_how_json_has_to_be_asked_for(
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


async def test_the_memory_model_is_the_one_asked_for_json(
    settings_of: SettingsOf, model_api: ModelApiServer
) -> None:
    model_api.dialect = Dialect(models=frozenset({"stand-in"}))
    settings = settings_of(
        openai_base_url=model_api.base_url, openai_model="stand-in", openai_memory_model="typo"
    )
    row = (await rows_of(check_chat(settings)))["Model JSON"]
    assert (row.verdict, row.seen) == ("fail", "there is no such model, or no such page")
    assert row.advice.startswith("look at OPENAI_MEMORY_MODEL and OPENAI_BASE_URL")


@pytest.mark.parametrize(
    ("extracts", "verdict"),
    [
        ({"favorite": {"color": 7}}, "fail"),
        ({"favorite": {"color": None}}, "warn"),
        ({"something": "else"}, "fail"),
    ],
)
async def test_json_of_another_shape_does_not_pass(
    settings: Settings, reader: FrontReader, extracts: object, verdict: str
) -> None:
    reader.extracts = extracts
    assert (await rows_of(check_chat(settings)))["Model JSON"].verdict == verdict


@pytest.mark.parametrize(
    ("fault", "seen"),
    [
        (ApiError(401, "Incorrect key: sk-any"), "the key is not accepted"),
        (ApiError(404, "No such model"), "there is no such model, or no such page"),
        (ApiError(418, "I am a teapot", kind=""), "the server declines such a request (418)"),
        (rate_limited(0), "too many calls"),
        (server_error(), "trouble at the server (500)"),
        (Break.DROP, "the connection fails"),
        (Break.HTML, "what answers there is no OpenAI-compatible server"),
        (StreamBreak.CUT, "the answer broke off, twice"),
    ],
)
async def test_a_model_that_does_not_answer_is_one_failed_row(
    settings: Settings, model_api: ModelApiServer, fault: Fault, seen: str
) -> None:
    model_api.faults.add(fault, times=None)
    rows = await rows_of(check_chat(settings))
    assert [(row.verdict, row.seen) for row in rows.values()] == [("fail", seen)]
    assert "sk-any" not in repr(rows)


async def test_silence_ends_in_time(settings_of: SettingsOf, model_api: ModelApiServer) -> None:
    model_api.faults.add(Break.HANG, times=None)
    settings = settings_of(openai_base_url=model_api.base_url, model_timeout_s=1)
    [row] = (await rows_of(check_chat(settings))).values()
    assert row.verdict == "fail"
