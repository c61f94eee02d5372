"""The refusals of OpenAI's models, and the behavior of reasoning models, through the real SDK."""

import asyncio
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from tests.servers.model_api import Dialect, ModelApiServer, Scripted
from tests.servers.model_api_client import client_of
from tests.servers.openai_models import refused_by_openai
from tests.servers.reasoning_model import ReasoningModel

OPENAI = Dialect(server="OpenAI", refuses=refused_by_openai)
CHAT_TOOL = {"type": "function", "function": {"name": "sum", "parameters": {"type": "object"}}}
TOOL = {"type": "function", "name": "sum", "parameters": {"type": "object"}, "strict": False}


async def chat(client: AsyncOpenAI, model: str, **more: Any) -> Any:
    body = {"model": model, "messages": [{"role": "user", "content": "hello"}], **more}
    return await client.post("/chat/completions", body=body, cast_to=object)


async def responses(client: AsyncOpenAI, model: str, **more: Any) -> Any:
    body = {"model": model, "input": "hello", **more}
    return await client.post("/responses", body=body, cast_to=object)


@pytest.mark.parametrize(
    ("model", "body", "param", "said"),
    [
        (
            "gpt-5.6-luna",
            {"tools": [CHAT_TOOL]},
            "reasoning_effort",
            (
                "Function tools with reasoning_effort are not supported for gpt-5.6-luna in "
                "/v1/chat/completions. To use function tools, use /v1/responses or set "
                "reasoning_effort to 'none'."
            ),
        ),
        ("gpt-6.1-nova", {"tools": [CHAT_TOOL], "reasoning_effort": "low"}, "reasoning_effort", ""),
        (
            "gpt-5.5",
            {"tools": [CHAT_TOOL], "reasoning_effort": "low"},
            "reasoning_effort",
            (
                "Function tools with reasoning_effort are not supported for gpt-5.5 in "
                "/v1/chat/completions. Please use /v1/responses instead."
            ),
        ),
        (
            "gpt-5.6-luna",
            {"reasoning_effort": "minimal"},
            "reasoning_effort",
            (
                "Unsupported value: 'reasoning_effort' does not support 'minimal' with this model. "
                "Supported values are: 'none', 'low', 'medium', 'high', 'xhigh'."
            ),
        ),
        ("gpt-5.6-luna", {"temperature": 0.2}, "temperature", ""),
        ("gpt-5-mini", {"max_tokens": 100}, "max_tokens", ""),
        ("gpt-4.1-mini", {"reasoning_effort": "low"}, "reasoning_effort", ""),
    ],
)
async def test_a_model_refuses_with_the_text_of_the_service(
    model: str, body: dict[str, Any], param: str, said: str
) -> None:
    async with (
        ModelApiServer(Scripted(), dialect=OPENAI) as server,
        client_of(server) as client,
    ):
        with pytest.raises(openai.BadRequestError) as caught:
            await chat(client, model, **body)
    assert caught.value.param == param
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("model", "body"),
    [
        ("gpt-5.6-luna", {"tools": [CHAT_TOOL], "reasoning_effort": "none"}),
        ("gpt-5.6-luna", {"max_completion_tokens": 100, "temperature": 1}),
        ("gpt-5.4-mini", {"tools": [CHAT_TOOL]}),
        ("gpt-4.1-mini", {"tools": [CHAT_TOOL], "max_tokens": 100, "temperature": 0.2}),
        ("llama-3", {"tools": [CHAT_TOOL], "max_tokens": 100, "reasoning_effort": "minimal"}),
    ],
)
async def test_a_model_accepts_its_supported_parameters(model: str, body: dict[str, Any]) -> None:
    async with ModelApiServer(Scripted(), dialect=OPENAI) as server, client_of(server) as client:
        await chat(client, model, **body)


async def test_a_model_may_be_for_responses_only() -> None:
    async with ModelApiServer(Scripted(), dialect=OPENAI) as server, client_of(server) as client:
        with pytest.raises(openai.NotFoundError, match="not supported in the v1/chat/completions"):
            await chat(client, "gpt-5.3-codex")
        await responses(client, "gpt-5.3-codex", tools=[TOOL], reasoning={"effort": "high"})


async def test_responses_accept_tools_with_every_effort() -> None:
    async with ModelApiServer(Scripted(), dialect=OPENAI) as server, client_of(server) as client:
        await responses(client, "gpt-6.2-vega", tools=[TOOL], reasoning={"effort": "max"})
        with pytest.raises(openai.BadRequestError, match="'minimal'") as caught:
            await responses(client, "gpt-5.6-luna", reasoning={"effort": "minimal"})
    assert caught.value.param == "reasoning.effort"


async def test_thoughts_may_use_up_all_tokens_of_an_answer() -> None:
    model = ReasoningModel(Scripted("A short answer."))
    async with ModelApiServer(model) as server, client_of(server) as client:
        cut = await responses(client, "m", max_output_tokens=300)
        whole = await responses(client, "m", max_output_tokens=300, reasoning={"effort": "low"})
        chat_cut = await chat(client, "m", max_completion_tokens=300)
    assert (cut["status"], [entry["type"] for entry in cut["output"]]) == (
        "incomplete",
        ["reasoning"],
    )
    assert cut["incomplete_details"] == {"reason": "max_output_tokens"}
    assert cut["usage"]["output_tokens_details"] == {"reasoning_tokens": 300}
    assert (whole["status"], whole["usage"]["output_tokens_details"]["reasoning_tokens"]) == (
        "completed",
        100,
    )
    [choice] = chat_cut["choices"]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("length", "")
    assert model.efforts == ["", "low", ""]


async def test_a_reasoning_model_begins_at_once_and_then_is_silent() -> None:
    model = ReasoningModel(Scripted("At last."), thinking_s=3600)
    async with ModelApiServer(model) as server, client_of(server) as client:
        stream = await client.responses.create(model="m", input="hello", stream=True)
        assert (await anext(aiter(stream))).type == "response.created"
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                [event async for event in stream if event.type == "response.output_text.delta"]
