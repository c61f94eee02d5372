"""What to do about a model server that fails. The servers of docs/models.md have their own advice.

A server is recognized by its address, by headers, by fields of the list of models and by the text
of an error. At most two requests are made, which cost nothing: the list of models, and a chat
completion without messages.
"""

import asyncio
import re
import tomllib
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path

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
from memory.store.errors import distrust

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
    def form(self) -> str:
        """What follows the name of the setting that has the address."""
        return f" ({self.name}: {self.address})" if self.name else ", which usually ends in /v1"


_LISTED = tomllib.loads(Path(__file__).with_name("known_servers.toml").read_text("utf-8"))
KNOWN = tuple(KnownServer(**each) for each in _LISTED["servers"])
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


def untrusted(error: BaseException, setting: str) -> tuple[str, str]:
    """Return what is wrong with the certificate of a server, and what to do about it."""
    advice = f"renew it, or check the host in {setting} and this machine's clock; "
    advice += "SSL_CERT_FILE can name an authority of your own"
    return f"its certificate is not trusted: {distrust(error)}", advice


_CONNECTION = {
    "dns": "the name in the address is unknown",
    "connection_refused": "no server listens at the address",
    "connection_failed": "the connection failed",
}


def trouble(
    what: str, error: ModelError, model: str = "OPENAI_MODEL", known: KnownServer = OTHER
) -> Row:
    """Return the failed row of the model that a setting names; never repeat the server's text."""
    server = _server_of(model)
    address = f"{server}_BASE_URL{known.form}"
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
        case NotAModel() if model == "SPEECH_MODEL":
            seen, advice = "no OGG with Opus came", f"check {address}"
        case NotAModel():
            seen, advice = "the server there is not OpenAI-compatible", f"check {address}"
        case AnswerIncomplete():
            seen, advice = "the answer broke off twice", f"try again, or another {model}"
        case _:
            seen, advice = "no usable answer", f"try another {model}"
    return Row(what, "fail", seen, advice)


def name_shared_server(row: Row, settings: Settings, model: str) -> Row:
    """Name in the advice what is really set if this model is on the server of the main model."""
    server = _server_of(model)
    key, address = f"{server}_API_KEY", f"{server}_BASE_URL"
    if getattr(settings, address.lower()) != settings.openai_base_url:
        return row
    advice = row.advice.replace(f"check {address}", "check OPENAI_BASE_URL")
    if key.lower() not in settings.model_fields_set:
        advice = advice.replace(key, "OPENAI_API_KEY")
    return replace(row, advice=advice)


def _server_of(model: str) -> str:
    has_own = model in ("OPENAI_EMBEDDING_MODEL", "TRANSCRIPTION_MODEL", "SPEECH_MODEL")
    return model.removesuffix("_MODEL") if has_own else "OPENAI"


def _unavailable(error: ModelUnavailable, model: str, server: str) -> tuple[str, str]:
    match error.code, error.status:
        case "certificate", _:
            seen, advice = untrusted(error, f"{server}_BASE_URL")
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
