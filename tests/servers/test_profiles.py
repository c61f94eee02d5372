"""OpenAI's models refuse in the words of the service.

The words of the other servers are checked by the tests of `bot.features.check`.
"""

from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from tests.servers.model_api import Dialect, ModelApiServer, Scripted
from tests.servers.model_api_client import client_of
from tests.servers.openai_models import refused_by_openai
from tests.servers.profiles import GROQ

OPENAI = Dialect(server="OpenAI", refuses=refused_by_openai)
HELLO = [{"role": "user", "content": "hello"}]
FUNCTION = {"name": "sum", "parameters": {"type": "object"}}
TOOLS: dict[str, object] = {"tools": [{"type": "function", "function": FUNCTION}]}


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


async def test_groq_refuses_store_over_chat_completions() -> None:
    async with ModelApiServer(Scripted(), dialect=GROQ) as server, client_of(server) as client:
        with pytest.raises(openai.BadRequestError, match="property 'store' is unsupported"):
            await chat(client, "llama-3", store=False)
        await responses(client, "llama-3", store=False)
