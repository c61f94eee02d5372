"""Posts updates to a webhook as Telegram does, and notes when each was acknowledged.

It keeps as many connections open as Telegram does by default and uses them in turn, with one
request at a time on each. An update waits until a connection is free. Unlike Telegram it never
posts an update again.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import httptools
import orjson

from tests.lab.lean_http import HOST
from tests.lab.lean_telegram import Update

CONNECTIONS = 40
"""Telegram's default of `max_connections`."""

_PATIENCE_S = 60


class NotAcknowledged(Exception):
    """Raised when a webhook does not answer, or answers with another status than 200."""


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """An answer's status, and when it arrived, by the loop's clock."""

    status: int
    at: float


Freed = Callable[["_Connection"], None]


class Posting:
    """Posts to one webhook; used with `async with`."""

    def __init__(self, port: int, path: str, secret: str) -> None:
        self._port = port
        self._head = (
            f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
            f"X-Telegram-Bot-Api-Secret-Token: {secret}\r\nContent-Length: "
        ).encode()
        self._waiting: deque[tuple[bytes, asyncio.Future[Acknowledgement]]] = deque()
        self._free: deque[_Connection] = deque()
        self._connections: list[_Connection] = []

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        for _ in range(CONNECTIONS):
            _, connection = await loop.create_connection(
                lambda: _Connection(self._freed), HOST, self._port
            )
            self._connections.append(connection)
        self._free.extend(self._connections)
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection in self._connections:
            connection.abandon()

    def request(self, update: Update) -> bytes:
        """Return the HTTP request of an update."""
        body = orjson.dumps(update)
        return self._head + b"%d\r\n\r\n%b" % (len(body), body)

    def post(self, request: bytes) -> "asyncio.Future[Acknowledgement]":
        """Post as soon as a connection is free."""
        future: asyncio.Future[Acknowledgement] = asyncio.get_running_loop().create_future()
        if self._free:
            self._free.popleft().post(request, future)
        else:
            self._waiting.append((request, future))
        return future

    async def deliver(self, update: Update) -> None:
        """Post an update and wait for its acknowledgement; raise `NotAcknowledged`."""
        async with asyncio.timeout(_PATIENCE_S):
            acknowledged = await self.post(self.request(update))
        if acknowledged.status != 200:
            raise NotAcknowledged(str(acknowledged.status))

    def _freed(self, connection: "_Connection") -> None:
        if self._waiting:
            connection.post(*self._waiting.popleft())
        else:
            self._free.append(connection)


class _Connection(asyncio.Protocol):
    """One connection; `on_message_complete` is the parser's."""

    def __init__(self, freed: Freed) -> None:
        self._freed = freed
        self._parser = httptools.HttpResponseParser(self)
        self._future: asyncio.Future[Acknowledgement] | None = None

    def post(self, request: bytes, future: "asyncio.Future[Acknowledgement]") -> None:
        if self.transport.is_closing():
            future.set_exception(NotAcknowledged("the connection was idle for too long"))
            return
        self._future = future
        self.transport.write(request)

    def abandon(self) -> None:
        """Close the connection and cancel the request on it."""
        if self._future:
            self._future.cancel()
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        at = asyncio.get_running_loop().time()
        future, self._future = self._future, None
        assert future
        if not future.done():
            future.set_result(Acknowledgement(self._parser.get_status_code(), at))
        self._freed(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._future and not self._future.done():
            self._future.set_exception(NotAcknowledged(f"connection lost: {exc}"))
