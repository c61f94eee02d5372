"""OpenAI's models refuse what the service refuses.

The words of all servers are checked by the tests of `bot.features.check`.
"""

from typing import Any

import openai
from openai import AsyncOpenAI

from tests.servers.model_api import Dialect, ModelApiServer, Scripted
from tests.servers.model_api_client import client_of
from tests.servers.openai_models import refused_by_openai
from tests.servers.profiles import GROQ

OPENAI = Dialect(server="OpenAI", refuses=refused_by_openai)
HELLO = [{"role": "user", "content": "hello"}]
FUNCTION = {"name": "sum", "parameters": {"type": "object"}}
TOOLS: dict[str, object] = {"tools": [{"type": "function", "function": FUNCTION}]}


EFFORT = "reasoning_effort"
REFUSED: list[tuple[str, dict[str, object], str]] = [
    ("gpt-5.6-luna", TOOLS, EFFORT),
    ("gpt-6.1-nova", {**TOOLS, EFFORT: "low"}, EFFORT),
    ("gpt-5.5", {**TOOLS, EFFORT: "low"}, EFFORT),
    ("gpt-5.6-luna", {EFFORT: "minimal"}, EFFORT),
    ("gpt-5.6-luna", {"temperature": 0.2}, "temperature"),
    ("gpt-5-mini", {"max_tokens": 100}, "max_tokens"),
    ("gpt-4.1-mini", {EFFORT: "low"}, EFFORT),
    ("gpt-5.3-codex", {}, "model"),
]
TAKEN: list[tuple[str, dict[str, object]]] = [
    ("gpt-5.6-luna", {**TOOLS, EFFORT: "none"}),
    ("gpt-5.6-luna", {"max_completion_tokens": 100, "temperature": 1}),
    ("gpt-5.4-mini", TOOLS),
    ("gpt-4.1-mini", {**TOOLS, "max_tokens": 100, "temperature": 0.2}),
    ("llama-3", {**TOOLS, "max_tokens": 100, EFFORT: "minimal"}),
]


async def asked(client: AsyncOpenAI, path: str, model: str, **more: Any) -> str | None:
    """Return the parameter that is refused (None if it is not named), "" if nothing is."""
    given = {"input": "hello"} if path == "/responses" else {"messages": HELLO}
    try:
        await client.post(path, body={"model": model, **given, **more}, cast_to=object)
    except openai.APIStatusError as error:
        return error.param
    return ""


async def test_openais_models_refuse_what_the_service_refuses() -> None:
    tool = {"type": "function", "strict": False, **FUNCTION}
    async with ModelApiServer(Scripted(), dialect=OPENAI) as server, client_of(server) as client:
        for model, body, param in REFUSED:
            assert await asked(client, "/chat/completions", model, **body) == param
        for model, body in TAKEN:
            assert await asked(client, "/chat/completions", model, **body) == ""
        for model, effort, param in (
            ("gpt-5.3-codex", "high", ""),
            ("gpt-6.2-vega", "max", ""),
            ("gpt-5.6-luna", "minimal", "reasoning.effort"),
        ):
            more = {"tools": [tool], "reasoning": {"effort": effort}}
            assert await asked(client, "/responses", model, **more) == param


async def test_groq_refuses_store_over_chat_completions() -> None:
    async with ModelApiServer(Scripted(), dialect=GROQ) as server, client_of(server) as client:
        assert await asked(client, "/chat/completions", "llama-3", store=False) is None
        assert await asked(client, "/responses", "llama-3", store=False) == ""
