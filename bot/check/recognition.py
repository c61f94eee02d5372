"""Which of the known model servers answers at an address, and what helps with that one.

A server is told by what it cannot help saying: headers, fields of its list of models, the words
of an error. Two requests are made that cost nothing: the list, and a chat completion that asks
for nothing.
"""

import re
from contextlib import suppress
from dataclasses import dataclass

import httpx2

from bot.http_client import HttpClient, trusted

_PATIENCE_S = 5
_MAX_BYTES = 64 * 1024
"""OpenRouter's list of models is ten times as long; its first entries say enough."""


@dataclass(frozen=True, slots=True)
class KnownServer:
    """A server of docs/models.md.

    `sign` is what its address, headers or bodies hold, `address` how its base URL looks.
    `context` is what makes its context larger, `tools` what lets its models call tools, and
    `refusal` what a request that it declines may lack.
    """

    name: str
    sign: str
    address: str
    context: str = ""
    tools: str = ""
    refusal: str = ""


KNOWN = (
    KnownServer(
        "LiteLLM",
        r'^x-litellm-|"no_db_connection"|"created": ?1677610602\b',
        "http://HOST:4000/v1",
        refusal="LiteLLM says so of a wrong OPENAI_API_KEY as well",
    ),
    KnownServer(
        "OpenRouter",
        r'//openrouter\.ai/|"canonical_slug"',
        "https://openrouter.ai/api/v1",
        tools="OpenRouter lists which models take tools",
        refusal="at OpenRouter OPENAI_MODEL is written as maker/model",
    ),
    KnownServer(
        "Azure OpenAI",
        r"\.azure\.com/|^apim-request-id:|^x-ms-region:",
        "https://RESOURCE.openai.azure.com/openai/v1 (OPENAI_MODEL is the deployment's name)",
    ),
    KnownServer(
        "Groq",
        r"//api\.groq\.com/|^x-groq-|console\.groq\.com",
        "https://api.groq.com/openai/v1",
    ),
    KnownServer(
        "llama.cpp",
        r'^server: llama\.cpp|"owned_by": ?"llamacpp"',
        "http://HOST:8080/v1",
        context="the context of llama-server (-c)",
        tools="start llama-server with --jinja",
    ),
    KnownServer(
        "LM Studio",
        r'"owned_by": ?"organization_owner"|Unexpected endpoint or method',
        "http://HOST:1234/v1",
        context="the context length with which LM Studio loads the model",
    ),
    KnownServer(
        "vLLM",
        r'"owned_by": ?"vllm"',
        "http://HOST:8000/v1",
        context="vLLM's --max-model-len",
        tools="start vLLM with --enable-auto-tool-choice and --tool-call-parser",
    ),
    KnownServer(
        "Ollama",
        r'"owned_by": ?"library"',
        "http://HOST:11434/v1",
        context="OLLAMA_CONTEXT_LENGTH at the server",
        tools="`ollama show MODEL` says whether it takes tools",
    ),
    KnownServer(
        "OpenAI",
        r"//api\.openai\.com/|^openai-(version|processing-ms):",
        "https://api.openai.com/v1",
    ),
)
"""The first whose sign is found counts: LiteLLM passes on what the servers behind it say."""

OTHER = KnownServer("", "", "", context="the server's context (for Ollama: OLLAMA_CONTEXT_LENGTH)")


async def recognize(base_url: str, key: str | None) -> KnownServer:
    """Return the server at an address, `OTHER` when it is none that we know."""
    headers = {"authorization": f"Bearer {key}"} if key else {}
    address = base_url.rstrip("/")
    seen = f"{address}/"
    async with HttpClient(verify=trusted(), timeout=_PATIENCE_S, headers=headers) as client:
        for request in (
            client.build_request("GET", f"{address}/models"),
            client.build_request("POST", f"{address}/chat/completions", json={}),
        ):
            seen += await _answer(client, request)
            for server in KNOWN:
                if re.search(server.sign, seen, re.IGNORECASE | re.MULTILINE):
                    return server
    return OTHER


async def _answer(client: HttpClient, request: httpx2.Request) -> str:
    """Return headers and the beginning of the body, one header a line; "" without an answer."""
    told = ""
    with suppress(httpx2.HTTPError):
        response = await client.send(request, stream=True)
        told = "".join(f"\n{name}: {value}" for name, value in response.headers.items()) + "\n"
        body = b""
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > _MAX_BYTES:
                break
        await response.aclose()
        told += body.decode(errors="replace")
    return told
