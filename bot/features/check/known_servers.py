"""The model servers of docs/models.md, told apart so that advice fits the server.

A server is recognized by its address, by headers, by fields of the list of models and by the text
of an error. At most two requests are made, which cost nothing: the list of models, and a chat
completion without messages.
"""

import asyncio
import re
from contextlib import aclosing, suppress
from dataclasses import dataclass

import httpx2

from bot.http_client import HttpClient, trusted

_TIMEOUT_S = 5
_MAX_BYTES = 64 * 1024
"""OpenRouter's list of models is ten times as long; its first entries are enough."""


@dataclass(frozen=True, slots=True)
class KnownServer:
    """A server of docs/models.md."""

    name: str
    address: str  # the form of its base URL
    sign: str = ""  # a pattern in its address, a header or a body; any case, any line
    context: str = ""  # how to make its context larger
    tools: str = ""  # how its models may call tools
    refusal: str = ""  # why it may have refused a request

    @property
    def words(self) -> dict[str, str]:
        """The arguments by which `trouble` gives advice for this server."""
        form = f" ({self.name}: {self.address})"
        return {"form": form, "refusal": self.refusal} if self.name else {}


KNOWN = (
    KnownServer(
        "LiteLLM",
        "http://HOST:4000/v1",
        r'^x-litellm-|"no_db_connection"|"created": ?1677610602\b',
        refusal="LiteLLM gives the same answer to a wrong OPENAI_API_KEY",
    ),
    KnownServer(
        "OpenRouter",
        "https://openrouter.ai/api/v1",
        r'//openrouter\.ai/|"canonical_slug"',
        tools="OpenRouter lists which models take tools",
        refusal="OpenRouter needs OPENAI_MODEL in the form maker/model",
    ),
    KnownServer(
        "Azure OpenAI",
        "https://RESOURCE.openai.azure.com/openai/v1 (OPENAI_MODEL is the deployment's name)",
        r"\.azure\.com/|^apim-request-id:|^x-ms-region:",
    ),
    KnownServer(
        "Groq", "https://api.groq.com/openai/v1", r"//api\.groq\.com/|^x-groq-|console\.groq\.com"
    ),
    KnownServer(
        "llama.cpp",
        "http://HOST:8080/v1",
        r'^server: llama\.cpp|"owned_by": ?"llamacpp"',
        context="the context of llama-server (-c)",
        tools="start llama-server with --jinja",
    ),
    KnownServer(
        "LM Studio",
        "http://HOST:1234/v1",
        r'"owned_by": ?"organization_owner"|Unexpected endpoint or method',
        context="the context length with which LM Studio loads the model",
    ),
    KnownServer(
        "vLLM",
        "http://HOST:8000/v1",
        r'"owned_by": ?"vllm"',
        context="vLLM's --max-model-len",
        tools="start vLLM with --enable-auto-tool-choice and --tool-call-parser",
    ),
    KnownServer(
        "Ollama",
        "http://HOST:11434/v1",
        r'"owned_by": ?"library"',
        context="OLLAMA_CONTEXT_LENGTH at the server",
        tools="`ollama show MODEL` says whether it takes tools",
    ),
    KnownServer(
        "OpenAI",
        "https://api.openai.com/v1",
        r"//api\.openai\.com/|^openai-(version|processing-ms):",
    ),
)
"""The first that fits counts: LiteLLM passes on what the servers behind it say."""

OTHER = KnownServer("", "", context="the server's context (for Ollama: OLLAMA_CONTEXT_LENGTH)")


async def recognize(base_url: str, key: str | None) -> KnownServer:
    """Return the server at an address; `OTHER` if we do not know it."""
    headers = {b"accept-encoding": b"identity"}
    if key:
        headers[b"authorization"] = f"Bearer {key}".encode()
    address = base_url.rstrip("/")
    seen = f"{address}/"
    async with HttpClient(verify=trusted(), timeout=_TIMEOUT_S, headers=headers) as client:
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
    """Return one line for each header, then the beginning of the body; "" without an answer."""
    headers, body = "", b""
    with suppress(httpx2.HTTPError, TimeoutError):
        async with asyncio.timeout(_TIMEOUT_S):
            response = await client.send(request, stream=True)
            async with aclosing(response):
                async for piece in response.aiter_bytes():
                    body += piece
                    if len(body) > _MAX_BYTES:
                        break
            headers = "".join(f"\n{name}: {value}" for name, value in response.headers.items())
    return f"{headers}\n{body.decode(errors='replace')}" if headers else ""
