"""Shared by all HTTP: the trusted certificates, bounds of answers, and one corrected error."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from functools import cache, partial
from math import inf
from typing import Any
from weakref import proxy

import httpx2
import orjson

IDLE_S = 4.0
"""A connection that was idle for longer is not used again. Many servers close one after five
seconds. A request that is sent meanwhile gets no answer, so we cannot tell what became of it."""
MAX_VALUES = 200_000
"""How many values the JSON of a server may have. Each takes up to 500 bytes of memory, and parsing
a million of them holds the event loop for a quarter of a second."""
_MAX_HEAD_BYTES, _HEAD_PIECE_BYTES = 32 * 1024, 4 * 1024
"""How long all that comes before a body may be, and how much of it httpx2 may read at once. It
parses that in one step of the event loop, however many headers or early answers (103) there are."""
_MAX_JOINED_BYTES = 2**18  # a longer body is not copied behind its head
_MAX_REPAIRED_BYTES = 2**20  # of JSON with half an emoji; longer JSON is base64 or numbers


@cache
def trusted() -> ssl.SSLContext:
    """Return httpx2's default TLS context; built once in a process, because that takes 45 ms."""
    return httpx2.create_ssl_context()


async def read_within(pieces: AsyncIterable[bytes], max_bytes: int) -> bytes | None:
    """Return a body, None if it is longer than `max_bytes`, whatever length was announced.

    A server may send each byte alone, which takes a thousand times as long. So there is a limit of
    pieces, too.
    """
    body, count = bytearray(), 0
    async for piece in pieces:
        body += piece
        count += 1
        if len(body) > max_bytes or count > 1_000 + max_bytes // 100:
            return None
    return bytes(body)


def has_too_many_values(body: bytes, max_values: float = MAX_VALUES) -> bool:
    """Return whether JSON has too many commas and opening brackets, those inside texts included."""
    return len(body) > max_values and sum(map(body.count, (b",", b"[", b"{"))) > max_values


def read_json(body: bytes, max_values: float = inf) -> Any:
    """Return parsed JSON, U+FFFD for half an emoji; raise `ValueError` or `RecursionError`."""
    if has_too_many_values(body, max_values):
        raise ValueError("too many values")
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:  # it refuses half an emoji, and so does what writes it again
        if len(body) > _MAX_REPAIRED_BYTES:
            raise
        text = json.dumps(json.loads(body), ensure_ascii=False)
        return json.loads(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))


class HttpClient(httpx2.AsyncClient):
    """Limits what comes before a body, and lets others go on while a body comes in tiny pieces.

    Both are for HTTP/1.1 alone.
    It raises httpx2's `ConnectError` also if a connection breaks while it is opened. httpx2 alone
    would raise an `AttributeError`, because uvloop has already dropped the socket when anyio 4 asks
    for the address of the other side.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.event_hooks["request"].append(_bound_head)
        self.event_hooks["response"].insert(0, _begin_body)

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request as httpx2 does."""
        try:
            return await super().send(request, **options)
        except AttributeError as error:
            if (error.name, error.obj) != ("getpeername", None):
                raise
            raise httpx2.ConnectError("closed while it was opened", request=request) from error


async def _bound_head(request: httpx2.Request) -> None:
    """Limit what comes before bodies on each connection, when it is opened."""
    trace_too = request.extensions.get("trace")

    async def trace(event: str, happened: dict[str, Any]) -> None:
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            _Connection(happened["return_value"])
        if trace_too:
            await trace_too(event, happened)

    request.extensions["trace"] = trace


async def _begin_body(response: httpx2.Response) -> None:
    """Read the body without this limit: all headers have come."""
    if connection := getattr(response.extensions.get("network_stream"), "connection", None):
        connection.head_bytes_left = inf
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = Body(response.stream)


class _Connection:
    """Sends a head with its body; reads what comes before a body in small pieces, and bounds it."""

    def __init__(self, stream: Any) -> None:
        # If we referred to the stream, both would stay until the garbage collector runs.
        self._library, itself = type(stream), proxy(stream)
        stream.read, stream.write = partial(self._read, itself), partial(self._write, itself)
        stream.connection = self
        self._head, self.head_bytes_left = b"", inf

    async def _write(self, stream: Any, sent: bytes, **options: Any) -> None:
        if self.head_bytes_left == inf and sent.endswith(b"\r\n\r\n"):  # sent with what follows
            self._head, self.head_bytes_left = sent, _MAX_HEAD_BYTES
            return
        head, self._head = self._head, b""
        for piece in [head + sent] if len(sent) <= _MAX_JOINED_BYTES else [head, sent]:
            await self._library.write(stream, piece, **options)

    async def _read(self, stream: Any, max_bytes: int, **options: Any) -> bytes:
        max_bytes = _HEAD_PIECE_BYTES if self.head_bytes_left < inf else max_bytes
        piece: bytes = await self._library.read(stream, max_bytes, **options)
        self.head_bytes_left -= len(piece)
        if self.head_bytes_left < 0:
            raise httpx2.RemoteProtocolError("too much comes before the body")
        return piece


@dataclass(eq=False)
class Body(httpx2.AsyncByteStream):
    """A body. Others go on after every 100 pieces, because a server may send each byte alone."""

    stream: httpx2.AsyncByteStream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for piece in self.stream:
            yield piece
            count += 1
            if count % 100 == 0:
                await asyncio.sleep(0)

    async def aclose(self) -> None:
        """Close the connection, or give it back."""
        await self.stream.aclose()
