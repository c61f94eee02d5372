"""Servers answer and refuse in their own words, and so do OpenAI's models."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import httpx2
import openai
import pytest
from openai import AsyncOpenAI

from tests.servers import profiles
from tests.servers.model_api import Dialect, ModelApiServer, Scripted
from tests.servers.model_api_client import client_of
from tests.servers.openai_models import refused_by_openai
from tests.servers.reasoning_model import ReasoningModel

OPENAI = Dialect(server="OpenAI", refuses=refused_by_openai)
HELLO = [{"role": "user", "content": "hello"}]
FUNCTION = {"name": "sum", "parameters": {"type": "object"}}
TOOLS: dict[str, object] = {"tools": [{"type": "function", "function": FUNCTION}]}


async def ask(
    dialect: Dialect, path: str, body: Mapping[str, Any] | None = None, key: str = "right"
) -> httpx2.Response:
    headers = {"authorization": f"Bearer {key}"}
    async with (
        ModelApiServer(Scripted(), dialect=replace(dialect, api_key="right")) as server,
        httpx2.AsyncClient(base_url=f"{server.base_url}/", headers=headers) as client,
    ):
        return await (client.get(path) if body is None else client.post(path, json=body))


@pytest.mark.parametrize(
    ("dialect", "path", "key", "status", "text"),
    [
        (profiles.OPENAI, "nowhere", "right", 404, "Invalid URL (POST /v1/nowhere)"),
        (profiles.GROQ, "nowhere", "right", 404, "unknown_url"),
        (profiles.OLLAMA, "nowhere", "right", 404, "404 page not found"),
        (profiles.LM_STUDIO, "nowhere", "right", 200, "Unexpected endpoint or method"),
        (profiles.LITELLM, "nowhere", "right", 404, '{"detail":"Not Found"}'),
        (profiles.OPENAI, "models", "wrong", 401, "invalid_api_key"),
        (profiles.OPENROUTER, "models", "wrong", 401, "User not found."),
        (profiles.AZURE, "models", "wrong", 401, "invalid subscription key"),
        (profiles.LITELLM, "models", "wrong", 400, "No connected db."),
        (profiles.GROQ, "chat/completions", "right", 400, "property 'store' is unsupported"),
        (profiles.VLLM, "models", "right", 200, '"owned_by":"vllm"'),
    ],
    ids=lambda value: value.server if isinstance(value, Dialect) else "",
)
async def test_a_server_answers_in_its_own_words(
    dialect: Dialect, path: str, key: str, status: int, text: str
) -> None:
    body = None if path == "models" else {"model": "m", "messages": HELLO, "store": False}
    answer = await ask(dialect, path, body, key)
    assert answer.status_code == status
    assert text in answer.text
    assert answer.headers.items() >= dict(dialect.headers).items()


async def test_a_prompt_loses_its_front_and_keeps_its_system_message() -> None:
    script = Scripted()
    roles = [f"{role} {number}" for number in range(4) for role in ("user", "assistant")]
    talk = [{"role": role.split()[0], "content": f"{role} {'word ' * 10}"} for role in roles]
    messages = [{"role": "system", "content": "Be kind."}, *talk, *HELLO]
    async with (
        ModelApiServer(script, dialect=replace(profiles.OLLAMA, context_tokens=80)) as server,
        httpx2.AsyncClient(base_url=f"{server.base_url}/") as client,
    ):
        answer = await client.post("chat/completions", json={"model": "m", "messages": messages})
    [(seen, _)] = script.log
    kept = [message.content[:11].strip() for message in seen.messages]
    assert kept == ["Be kind.", "assistant 2", "user 3 word", "assistant 3", "hello"]
    assert answer.json()["usage"]["prompt_tokens"] <= 80 < server.log.calls[0].prompt_tokens


async def chat(client: AsyncOpenAI, model: str, **more: Any) -> Any:
    body = {"model": model, "messages": HELLO, **more}
    return await client.post("/chat/completions", body=body, cast_to=object)


async def responses(client: AsyncOpenAI, model: str, **more: Any) -> Any:
    body = {"model": model, "input": "hello", **more}
    return await client.post("/responses", body=body, cast_to=object)


EFFORT = "Function tools with reasoning_effort are not supported for"
USE_ANOTHER = (
    "/v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to "
    "'none'."
)
REFUSED: list[tuple[str, dict[str, object], str, str]] = [
    ("gpt-5.6-luna", TOOLS, "reasoning_effort", f"{EFFORT} gpt-5.6-luna in {USE_ANOTHER}"),
    ("gpt-6.1-nova", {**TOOLS, "reasoning_effort": "low"}, "reasoning_effort", EFFORT),
    ("gpt-5.5", {**TOOLS, "reasoning_effort": "low"}, "reasoning_effort",
     f"{EFFORT} gpt-5.5 in /v1/chat/completions. Please use /v1/responses instead."),
    ("gpt-5.6-luna", {"reasoning_effort": "minimal"}, "reasoning_effort",
     "'minimal' with this model. Supported values are: 'none', 'low', 'medium', 'high', 'xhigh'."),
    ("gpt-5.6-luna", {"temperature": 0.2}, "temperature", ""),
    ("gpt-5-mini", {"max_tokens": 100}, "max_tokens", ""),
    ("gpt-4.1-mini", {"reasoning_effort": "low"}, "reasoning_effort", ""),
]  # fmt: skip
TAKEN: list[tuple[str, dict[str, object]]] = [
    ("gpt-5.6-luna", {**TOOLS, "reasoning_effort": "none"}),
    ("gpt-5.6-luna", {"max_completion_tokens": 100, "temperature": 1}),
    ("gpt-5.4-mini", TOOLS),
    ("gpt-4.1-mini", {**TOOLS, "max_tokens": 100, "temperature": 0.2}),
    ("llama-3", {**TOOLS, "max_tokens": 100, "reasoning_effort": "minimal"}),
]


async def test_openais_models_refuse_with_the_text_of_the_service() -> None:
    tool = {"type": "function", "strict": False, **FUNCTION}
    async with ModelApiServer(Scripted(), dialect=OPENAI) as server, client_of(server) as client:
        for model, body, param, text in REFUSED:
            with pytest.raises(openai.BadRequestError) as caught:
                await chat(client, model, **body)
            assert (caught.value.param, text in caught.value.message) == (param, True)
        for model, body in TAKEN:
            await chat(client, model, **body)
        with pytest.raises(openai.NotFoundError, match="not supported in the v1/chat/completions"):
            await chat(client, "gpt-5.3-codex")
        await responses(client, "gpt-5.3-codex", tools=[tool], reasoning={"effort": "high"})
        await responses(client, "gpt-6.2-vega", tools=[tool], reasoning={"effort": "max"})
        with pytest.raises(openai.BadRequestError, match="'minimal'") as caught:
            await responses(client, "gpt-5.6-luna", reasoning={"effort": "minimal"})
        assert caught.value.param == "reasoning.effort"


async def test_a_reasoning_model_may_use_up_all_tokens_and_is_silent_meanwhile() -> None:
    model = ReasoningModel(Scripted("A short answer."))
    async with ModelApiServer(model) as server, client_of(server) as client:
        cut = await responses(client, "m", max_output_tokens=300)
        whole = await responses(client, "m", max_output_tokens=300, reasoning={"effort": "low"})
        [choice] = (await chat(client, "m", max_completion_tokens=300))["choices"]
        server.responder = ReasoningModel(Scripted("At last."), thinking_s=3600)
        stream = await client.responses.create(model="m", input="hello", stream=True)
        assert (await anext(aiter(stream))).type == "response.created"
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                [event async for event in stream if event.type == "response.output_text.delta"]
    assert [entry["type"] for entry in cut["output"]] == ["reasoning"]
    assert cut["incomplete_details"] == {"reason": "max_output_tokens"}
    assert cut["usage"]["output_tokens_details"] == {"reasoning_tokens": 300}
    assert whole["status"] == "completed"
    assert whole["usage"]["output_tokens_details"] == {"reasoning_tokens": 100}
    assert (choice["finish_reason"], choice["message"]["content"]) == ("length", "")
    assert model.efforts == ["", "low", ""]
