"""A profile changes answers and refusals on the wire."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from tests.servers import profiles
from tests.servers.model_api import Dialect, ModelApiServer, Scripted

HELLO = [{"role": "user", "content": "hello"}]


async def ask(
    dialect: Dialect, path: str, body: Mapping[str, Any] | None = None, key: str = "right"
) -> httpx2.Response:
    headers = {"authorization": f"Bearer {key}"}
    async with (
        ModelApiServer(Scripted(), dialect=replace(dialect, api_key="right")) as server,
        httpx2.AsyncClient(base_url=f"{server.base_url}/", headers=headers) as client,
    ):
        if body is None:
            return await client.get(path)
        return await client.post(path, json=body)


@pytest.mark.parametrize(
    ("dialect", "status", "text"),
    [
        (profiles.OPENAI, 404, "Invalid URL (POST /v1/nowhere)"),
        (profiles.GROQ, 404, "unknown_url"),
        (profiles.OLLAMA, 404, "404 page not found"),
        (profiles.LM_STUDIO, 200, "Unexpected endpoint or method"),
        (profiles.LITELLM, 404, '{"detail":"Not Found"}'),
    ],
    ids=lambda value: value.server if isinstance(value, Dialect) else "",
)
async def test_an_unknown_path_is_refused_with_the_text_of_the_server(
    dialect: Dialect, status: int, text: str
) -> None:
    answer = await ask(dialect, "nowhere", {})
    assert answer.status_code == status
    assert text in answer.text
    assert answer.headers.items() >= dict(dialect.headers).items()


@pytest.mark.parametrize(
    ("dialect", "status", "text"),
    [
        (profiles.OPENAI, 401, "invalid_api_key"),
        (profiles.OPENROUTER, 401, "User not found."),
        (profiles.AZURE, 401, "invalid subscription key"),
        (profiles.LITELLM, 400, "No connected db."),
    ],
    ids=lambda value: value.server if isinstance(value, Dialect) else "",
)
async def test_a_wrong_key_is_refused_with_the_text_of_the_server(
    dialect: Dialect, status: int, text: str
) -> None:
    answer = await ask(dialect, "models", key="wrong")
    assert answer.status_code == status
    assert text in answer.text


async def test_a_refused_parameter_is_named() -> None:
    body = {"model": "m", "messages": HELLO, "store": False}
    answer = await ask(profiles.GROQ, "chat/completions", body)
    assert answer.json()["error"]["message"] == "property 'store' is unsupported"


async def test_the_list_of_models_shows_whose_it_is() -> None:
    [model, *_] = (await ask(profiles.VLLM, "models")).json()["data"]
    assert (model["owned_by"], model["max_model_len"]) == ("vllm", 8192)


async def test_a_prompt_loses_its_front_and_keeps_its_system_message() -> None:
    script = Scripted()
    dialect = replace(profiles.OLLAMA, context_tokens=80)
    talk = [
        {"role": role, "content": f"{role} {number} {'word ' * 10}"}
        for number in range(4)
        for role in ("user", "assistant")
    ]
    messages = [{"role": "system", "content": "Be kind."}, *talk, *HELLO]
    async with (
        ModelApiServer(script, dialect=dialect) as server,
        httpx2.AsyncClient(base_url=f"{server.base_url}/") as client,
    ):
        answer = await client.post("chat/completions", json={"model": "m", "messages": messages})
    [(seen, _)] = script.log
    assert [message.content[:11] for message in seen.messages] == [
        "Be kind.",
        "assistant 2",
        "user 3 word",
        "assistant 3",
        "hello",
    ]
    usage = answer.json()["usage"]
    assert usage["prompt_tokens"] <= 80 < server.log.calls[0].prompt_tokens
    assert set(usage) == {"prompt_tokens", "completion_tokens", "total_tokens"}
