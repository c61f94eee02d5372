"""We learn once what a model accepts; error texts are those of api.openai.com and other servers."""

from collections.abc import Callable

import pytest

from bot.model.call import CallLabels, ModelRequest
from bot.model.chat_model import ChatParameters, OpenAIChatModel
from bot.model.model_errors import ModelRefused
from bot.model.openai_client import ModelClient, open_client
from bot.model.request_forms import ServerApi
from bot.model.structured import StructuredModel
from tests.bot.model.conftest import CLOCK, HELLO, Logged
from tests.bot.model.internal_calls import ANSWER, PARTS, fill
from tests.servers.model_api import (
    ApiError,
    ApiRequest,
    ChatRequest,
    Dialect,
    ModelApiServer,
    Scripted,
    is_responses,
)

TOOLS = (CLOCK,)
TOOLS_REFUSED = ApiError(
    400,
    "Function tools with reasoning_effort are not supported for gpt-5.6-luna in "
    "/v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to "
    "'none'.",
    param="reasoning_effort",
)
NO_RESPONSES = ApiError(404, "Invalid URL (POST /v1/responses)")
PARAMETERS = ChatParameters(100, "low", "low", "flex")
LABELS = CallLabels("c0ffee", "beef")


def is_chat_completion(request: ApiRequest) -> bool:
    return isinstance(request, ChatRequest) and request.api == "chat"


def reasons_with_tools(request: ApiRequest) -> bool:
    """Match what gpt-5.6 refuses over chat completions."""
    effort = request.raw.get("reasoning_effort")
    return is_chat_completion(request) and "tools" in request.raw and effort != "none"


def apis(server: ModelApiServer) -> list[str]:
    """Return the API of each request, refused ones included."""
    return ["responses" if "responses" in call.path else "chat" for call in server.log.calls]


async def asked_twice(model: OpenAIChatModel) -> OpenAIChatModel:
    """Return the model after two requests with a tool."""
    for _ in range(2):
        await model.complete(ModelRequest(HELLO, TOOLS))
    return model


@pytest.mark.parametrize(
    ("base_url", "setting", "expected"),
    [
        ("https://api.openai.com/v1", "auto", "Responses"),
        ("https://eu.api.openai.com/v1", "auto", "Responses"),
        ("https://api.openai.com/v1", "chat", "chat"),
        ("https://api.openai.com.example.org/v1", "auto", "chat"),
        ("http://localhost:11434/v1", "auto", "chat"),
        ("http://localhost:11434/v1", "responses", "Responses"),
    ],
)
def test_openai_itself_is_asked_over_responses_and_others_over_chat_completions(
    base_url: str, setting: str, expected: str
) -> None:
    assert ServerApi.of(base_url, setting).dialect.name == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "refusal",
    [
        ApiError(
            404, "This model is only supported in v1/responses and not in v1/chat/completions."
        ),
        ApiError(
            404,
            "This is not a chat model and thus not supported in the v1/chat/completions "
            "endpoint. Did you mean to use v1/completions?",
        ),
        ApiError(404, "Invalid URL (POST /v1/chat/completions)"),
    ],
    ids=["only responses", "not a chat model", "no such path"],
)
async def test_a_server_that_asks_for_responses_gets_them_from_then_on(
    client: ModelClient, server: ModelApiServer, refusal: ApiError, logged: Logged
) -> None:
    server.faults.add(refusal, times=None, when=is_chat_completion)
    model = await asked_twice(OpenAIChatModel(client, "gpt-test", timeout_s=60))
    assert apis(server) == ["chat", "responses", "responses"]
    assert model.api == "Responses"
    found = [line for line in logged if line["event"] == "model answered"]
    assert [(line["model"], line["api"]) for line in found] == [("gpt-test", "Responses")]


async def test_the_api_of_a_server_is_the_same_for_its_other_models_and_for_internal_calls(
    client: ModelClient, server: ModelApiServer, script: Scripted
) -> None:
    refusal = ApiError(404, "Invalid URL (POST /v1/chat/completions)")
    server.faults.add(refusal, times=None, when=is_chat_completion)
    await OpenAIChatModel(client, "gpt-test", timeout_s=60).complete(ModelRequest(HELLO))
    script.then(ANSWER, ANSWER)
    for name in ("gpt-test", "gpt-memory"):
        assert await fill(StructuredModel(client, name, timeout_s=60)) == PARTS
    assert apis(server) == ["chat", *["responses"] * 3]


async def test_a_server_without_responses_gets_chat_completions_from_then_on(
    server: ModelApiServer,
) -> None:
    server.faults.add(NO_RESPONSES, times=None, when=is_responses)
    async with open_client(server.base_url, "any", 10) as client:
        client._api.dialect = ServerApi.of("https://api.openai.com/v1", "auto").dialect
        model = await asked_twice(OpenAIChatModel(client, "gpt-test", timeout_s=60))
    assert apis(server) == ["responses", "chat", "chat"]
    assert model.api == "chat"


@pytest.mark.parametrize(
    ("api", "asked"),
    [("auto", ["chat", "responses"]), ("chat", ["chat"]), ("responses", ["responses"])],
)
async def test_a_wrong_address_costs_a_request_of_each_api_and_a_set_api_is_kept(
    server: ModelApiServer, api: str, asked: list[str]
) -> None:
    server.faults.add(ApiError(404, "Invalid URL"), times=None)
    async with open_client(server.base_url, "any", 10, api=api) as client:  # type: ignore[arg-type]
        model = OpenAIChatModel(client, "gpt-test", timeout_s=60)
        with pytest.raises(ModelRefused):
            await model.complete(ModelRequest(HELLO))
    assert apis(server) == asked
    assert model.api.lower() == asked[0]


# Tools beside reasoning


async def test_a_model_that_takes_no_tools_while_it_reasons_is_asked_over_responses(
    client: ModelClient, server: ModelApiServer
) -> None:
    server.faults.add(TOOLS_REFUSED, times=None, when=reasons_with_tools)
    await asked_twice(OpenAIChatModel(client, "gpt-5.6-luna", timeout_s=60))
    assert apis(server) == ["chat", "responses", "responses"]
    assert "reasoning" not in server.log.chats[-1].raw


@pytest.mark.parametrize("effort", [None, "low"])
async def test_without_a_responses_api_such_a_model_is_asked_without_reasoning(
    client: ModelClient, server: ModelApiServer, effort: str | None, logged: Logged
) -> None:
    server.faults.add(TOOLS_REFUSED, times=None, when=reasons_with_tools)
    server.faults.add(NO_RESPONSES, times=None, when=is_responses)
    parameters = ChatParameters(reasoning=effort)  # type: ignore[arg-type]
    model = await asked_twice(OpenAIChatModel(client, "gpt-5.6-luna", 10, parameters))
    assert apis(server) == ["chat", "responses", "chat", "chat"]
    assert [call.raw["reasoning_effort"] for call in server.log.chats[-2:]] == ["none", "none"]
    await model.complete(ModelRequest(HELLO))
    assert server.log.chats[-1].raw.get("reasoning_effort") == effort
    assert {"reasoning dropped because of tools"} <= {line["event"] for line in logged}


async def test_with_chat_completions_set_this_costs_one_refusal(server: ModelApiServer) -> None:
    server.faults.add(TOOLS_REFUSED, times=None, when=reasons_with_tools)
    async with open_client(server.base_url, "any", 10, api="chat") as client:
        await asked_twice(OpenAIChatModel(client, "gpt-5.6-luna", timeout_s=60))
        other = OpenAIChatModel(client, "gpt-5.4-mini", timeout_s=60)
        await other.complete(ModelRequest(HELLO))
    assert apis(server) == ["chat"] * 4
    sent = [chat.raw.get("reasoning_effort") for chat in server.log.chats]
    assert sent[-3:] == ["none", "none", None]


# Options that are refused


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize(
    ("refused", "setting"),
    [
        ("effort", "OPENAI_REASONING"),
        ("verbosity", "OPENAI_VERBOSITY"),
        ("service_tier", "OPENAI_SERVICE_TIER"),
        ("safety_identifier", "OPENAI_SAFETY_IDENTIFIER"),
        ("prompt_cache_key", None),
        ("max", "REPLY_TOKENS"),
    ],
)
async def test_a_refused_option_is_left_out_and_the_log_names_its_setting(
    server: ModelApiServer, api: str, refused: str, setting: str | None, logged: Logged
) -> None:
    param = {
        "effort": {"chat": "reasoning_effort", "responses": "reasoning.effort"}[api],
        "verbosity": {"chat": "verbosity", "responses": "text.verbosity"}[api],
        "max": {"chat": "max_completion_tokens", "responses": "max_output_tokens"}[api],
    }.get(refused, refused)
    refusal = ApiError(400, f"Unsupported value: '{param}' is not supported.", param=param)
    server.faults.add(refusal, times=None, when=_holds(param))
    async with open_client(server.base_url, "any", 10, api=api) as client:  # type: ignore[arg-type]
        model = OpenAIChatModel(client, "gpt-test", 10, PARAMETERS)
        for _ in range(2):
            await model.complete(ModelRequest(HELLO, TOOLS, labels=LABELS))
    assert len(server.log.calls) == 3
    dropped = [line for line in logged if line["event"] == "parameter dropped"]
    assert [(line["setting"], line["model"]) for line in dropped] == [(setting, "gpt-test")]


def _holds(param: str) -> Callable[[ApiRequest], bool]:
    first, _, second = param.partition(".")

    def holds(request: ApiRequest) -> bool:
        given = request.raw.get(first)
        return given is not None and (not second or second in str(given))

    return holds


async def test_a_token_limit_refused_by_its_new_name_is_sent_by_the_old_one(
    client: ModelClient, server: ModelApiServer
) -> None:
    server.dialect = Dialect(unsupported=frozenset({"max_completion_tokens"}))
    await OpenAIChatModel(client, "gpt-test", 10, ChatParameters(100)).complete(ModelRequest(HELLO))
    assert server.log.chats[0].raw["max_tokens"] == 100
