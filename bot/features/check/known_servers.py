"""The model servers of docs/models.md, told apart so that advice fits the server.

A server is recognized by its address, by headers, by fields of the list of models and by the text
of an error. At most two requests are made, which cost nothing: the list of models, and a chat
completion without messages.
"""

import asyncio
import re
import tomllib
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path

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


_LISTED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
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
