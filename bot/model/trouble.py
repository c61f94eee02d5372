"""Says why a model gave no answer and what to do; it never repeats the server's text.

Advice fits the server, if it is a known one. We tell servers apart by headers, by fields of the
list of models and by the text of an error. Two requests are made, which cost nothing: the list of
models, and a chat completion without messages.
"""

import asyncio
import re
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from http import HTTPStatus

import httpx2

from bot.http_client import HttpClient, trusted
from bot.model.model_errors import (
    NO_CREDIT,
    AnswerIncomplete,
    ContextTooLong,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    NotAModel,
)
from bot.probe import Row
from config.settings import Settings

_TIMEOUT_S = 5
_MAX_BYTES = 64 * 1024
"""OpenRouter's list of models is ten times as long; its first entries are enough."""


@dataclass(frozen=True, slots=True)
class KnownServer:
    """A server of docs/models.md."""

    name: str
    address: str  # the form of its base URL
    sign: str = ""  # what is found in its address, a header or a body; any case, any line
    context: str = ""  # how to make its context larger
    tools: str = ""  # how its models may call tools
    refusal: str = ""  # why it may have refused a request


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

_SIGNS = [re.compile(each.sign, re.IGNORECASE | re.MULTILINE) for each in KNOWN]
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
            for server, sign in zip(KNOWN, _SIGNS, strict=True):
                if sign.search(seen):
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


_CONNECTION = {
    "dns": "the name in the address is unknown",
    "connection_refused": "no server listens at the address",
    "connection_failed": "the connection failed",
}


def trouble(
    what: str, error: ModelError, model: str = "OPENAI_MODEL", known: KnownServer = OTHER
) -> Row:
    """Return the failed row; `model` is the setting that names the model."""
    has_own_server = model in ("OPENAI_EMBEDDING_MODEL", "TRANSCRIPTION_MODEL", "SPEECH_MODEL")
    server = model.removesuffix("_MODEL") if has_own_server else "OPENAI"
    address = f"{server}_BASE_URL, which usually ends in /v1"
    if known.name:
        address = f"{server}_BASE_URL ({known.name}: {known.address})"
    match error:
        case ContextTooLong():
            seen, advice = "the prompt is too long for this model", "lower PROMPT_TOKENS"
        case ModelRefused(status=HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN):
            seen, advice = "the key was refused", f"check {server}_API_KEY"
        case ModelRefused(status=HTTPStatus.NOT_FOUND):
            seen, advice = "no such model, or no such path", f"check {model} and {address}"
        case ModelRefused():
            code = f", {error.code}" if error.code else ""
            seen = f"the server refused the request ({error.status}{code})"
            advice = f"try another {model}"
            if known.refusal:
                hint = known.refusal.replace("OPENAI_API_KEY", f"{server}_API_KEY")
                advice += f"; {hint.replace('OPENAI_MODEL', model)}"
        case ModelUnavailable():
            seen, advice = _unavailable(error, model, server)
        case NotAModel():
            seen, advice = "the server there is not OpenAI-compatible", f"check {address}"
        case AnswerIncomplete():
            seen, advice = "the answer broke off twice", f"try again, or another {model}"
        case _:
            seen, advice = "no usable answer", f"try another {model}"
    return Row(what, "fail", seen, advice)


def optional_trouble(what: str, error: ModelError, model: str, advice: str = "") -> Row:
    """Return the row of a model that the bot can do without; `advice` follows the usual one."""
    row = trouble(what, error, model)
    return replace(row, verdict="warn", advice=f"{row.advice}{advice}, or do without: {model}=off")


def name_shared_key(row: Row, settings: Settings, server: str) -> Row:
    """Name `OPENAI_API_KEY` in the advice if `server`, such as `SPEECH`, has no key of its own."""
    own, address = f"{server}_API_KEY", f"{server}_BASE_URL".lower()
    is_shared = getattr(settings, address) == settings.openai_base_url
    if not is_shared or own.lower() in settings.model_fields_set:
        return row
    return replace(row, advice=row.advice.replace(own, "OPENAI_API_KEY"))


def _unavailable(error: ModelUnavailable, model: str, server: str) -> tuple[str, str]:
    match error.code, error.status:
        case "dns" | "connection_refused" | "connection_failed", _:
            seen = _CONNECTION[error.code]
            advice = f"check {server}_BASE_URL, and whether the server runs"
        case code, _ if code == NO_CREDIT:
            seen, advice = "the account has no credit", f"check the account of {server}_API_KEY"
        case _, HTTPStatus.TOO_MANY_REQUESTS:
            seen, advice = "too many requests", f"wait, or check the limits of {server}_API_KEY"
        case _, HTTPStatus.NOT_IMPLEMENTED:
            seen, advice = "the server does not offer this", f"check {model}"
        case _, 0:
            seen = "no answer in time"
            faster = "try a faster model" if model == "SPEECH_MODEL" else "raise MODEL_TIMEOUT_S"
            advice = f"check {server}_BASE_URL, or {faster}"
        case _:
            seen = f"the server failed ({error.status})"
            advice = f"try again, or check {model} and {server}_BASE_URL"
    return seen, advice
