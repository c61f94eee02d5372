"""The web server, with bounds: Telegram's webhook and the health pages.

It handles no signals; its owner decides when it stops.

Uvicorn bounds neither the headers nor the requests that wait on one connection, nor the time in
which a request must arrive and its answer must be read.
"""

import asyncio
import socket
from asyncio import TimerHandle, Transport
from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from email.utils import formatdate
from time import monotonic
from typing import Any

import uvicorn
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from bot.telegram.connection import TelegramHealth
from memory.store.client import RedisClient
from memory.store.errors import StoreError

GRACE_S = 2
_PING_S = 3.0
_CHECK_EVERY_S = 1.0


class PortUnavailable(Exception):
    """Raised when a port cannot be listened on, mostly because another process does."""

    def __init__(self, port: int, error: OSError) -> None:
        super().__init__(f"cannot listen on port {port}: {error.strerror}")


def health_routes(
    store: RedisClient, health: TelegramHealth, *, has_webhook: bool, wait_replicas: int = 0
) -> list[BaseRoute]:
    """Return `/healthz` (the process lives) and `/readyz` (Redis and Telegram answer).

    With fewer than `wait_replicas` replicas Redis is not ready, because intake accepts no message.
    """
    checking, checked_at, redis = asyncio.Lock(), float("-inf"), ""

    async def healthz(_: Request) -> PlainTextResponse:
        return PlainTextResponse("ok")

    async def readyz(_: Request) -> JSONResponse:
        nonlocal checked_at, redis
        async with checking:  # at most once a second: the connections to Redis are for the bot
            if monotonic() - checked_at >= _CHECK_EVERY_S:
                redis, checked_at = await _redis_state(store, wait_replicas), monotonic()
        telegram = health.last_error
        if health.identity is None:
            telegram = f"not reached: {telegram}" if telegram else "not reached yet"
        elif not telegram:
            telegram = "ok" if health.webhook_set or not has_webhook else "webhook not set yet"
        checks = {"redis": redis, "telegram": telegram}
        is_ready = all(state == "ok" for state in checks.values())
        details = {
            "last_update_s_ago": health.age(health.last_update_at),
            "webhook_error": "delivery failed" if health.webhook_error_at else "",
            "webhook_error_s_ago": health.age(health.webhook_error_at),
        }
        return JSONResponse(checks | details, status_code=200 if is_ready else 503)

    return [Route("/healthz", healthz), Route("/readyz", readyz)]


class WebServer:
    """Serves routes on a port in the running loop; the constructor raises `PortUnavailable`."""

    def __init__(self, routes: Sequence[BaseRoute], port: int, host: str = "0.0.0.0") -> None:  # noqa: S104 - a platform's router comes from outside
        config = uvicorn.Config(
            # A redirect to a path without its last slash would go to any host that a caller names.
            ignore_disconnects(Router(routes, redirect_slashes=False)),
            http=BoundedHttpProtocol,
            # No header may claim where a call comes from: `/metrics` checks it.
            proxy_headers=False,
            log_config=None,
            log_level="error",  # it has a warning for each request that it cannot read
            access_log=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=GRACE_S,
            timeout_keep_alive=75,
        )
        self._server = _Server(config)
        self._server.server_state, self._server.stopping = Connections(), asyncio.Event()
        # A socket of `create_server` names no protocol. Without it asyncio does not set
        # TCP_NODELAY, and each further answer on a connection waits 40 ms.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Each connection inherits it. By default the system keeps up to 4 MB of an unread answer.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * 1024)
        try:
            self._socket.bind((host, port))
            self._socket.listen()
        except OSError as error:
            self._socket.close()
            raise PortUnavailable(port, error) from error
        self.port: int = self._socket.getsockname()[1]

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Serve while the block lasts, then accept no more requests and let running ones finish."""
        with self._socket:
            running = asyncio.create_task(self._server.serve(sockets=[self._socket]))
            try:
                yield
            finally:
                self._server.stopping.set()
                await running


class _Server(uvicorn.Server):
    stopping: asyncio.Event

    async def main_loop(self) -> None:
        """Wait for the end. Uvicorn looks for it ten times a second, and makes the date header."""
        await self.stopping.wait()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Handle no signals: uvicorn would raise them again and end the process during a turn."""
        yield


async def _redis_state(store: RedisClient, wait_replicas: int) -> str:
    """Return "ok", or what is wrong."""
    try:
        async with asyncio.timeout(_PING_S):
            await store.ping()
            policy = (await store.info("memory")).get("maxmemory_policy", "noeviction")
            replication = await store.info("replication") if wait_replicas else {}
    except (StoreError, TimeoutError):
        return "unreachable"
    if policy != "noeviction":
        return f"maxmemory-policy is {policy}, must be noeviction"
    linked = int(replication.get("connected_slaves", wait_replicas))
    if linked < wait_replicas:
        return f"{linked} replicas are connected, INTAKE_WAIT_REPLICAS is {wait_replicas}"
    return "ok"


CALLER_S = 10.0
"""How long a caller may take to send a request, headers and body, or to read its answer."""
MAX_CONNECTIONS = 256
_CONNECTION = "bot.connection"
MAX_OVERHEAD_BYTES = 64 * 1024
"""All that is not body: request line, headers, trailers, sizes of chunks."""
_PIECE_BYTES = 16 * 1024  # then we look at the limits; one read may bring 256 kB
_TINY_BYTES, _COST_OF_TINY = 256, 32
"""A tiny piece of a body counts 32 bytes as overhead, because it costs more time than its bytes."""
_MAX_HEADERS = 100  # of one request; a header of four bytes takes thirty times as much memory


def ignore_disconnects(app: ASGIApp) -> ASGIApp:
    """Wrap `app` so that a request ends silently if its caller disconnects before the answer.

    The event loop refuses to write then, or the body of the request ends too early. Uvicorn would
    log a traceback for each such caller.
    """

    async def run(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_if_there(message: Message) -> None:
            try:
                await send(message)
            except RuntimeError as error:
                raise _GoneError from error

        try:
            await app(scope, receive, send_if_there)
        except (_GoneError, ClientDisconnect):
            # The loop reports it a moment later; until then uvicorn would expect an answer.
            scope["extensions"][_CONNECTION]["protocol"].cycle.disconnected = True

    return run


class _GoneError(Exception):
    """Raised when an answer can no longer be written."""


class Connections(ServerState):
    """All connections of one server, and the ones that wait for their caller, oldest first."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: dict[BoundedHttpProtocol, None] = {}
        """Their request is incomplete, or their answer is unread."""
        self.idle: dict[BoundedHttpProtocol, None] = {}


class _RefusedError(Exception):
    """Raised in the parser, which then reads no further."""


class BoundedHttpProtocol(HttpToolsProtocol):
    """One connection. It closes if its caller is too slow or sends too much.

    It takes one request at a time. A second request before the answer closes it, because uvicorn
    would keep any number of them while the caller reads no answer.

    If there are too many connections, a new one replaces the oldest one that waits for its caller.
    So a caller who keeps connections open locks nobody out.
    """

    def __init__(self, *, server_state: Connections, **others: Any) -> None:
        super().__init__(server_state=server_state, **others)
        self._all = server_state
        self._deadline: TimerHandle | None = None
        self._is_incomplete = True
        self._overhead_bytes = 0

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Wait for the first request.

        If there are too many connections, close the oldest one that waits for its caller; this one
        if no other does.
        """
        super().connection_made(transport)
        self._watch()
        if len(self.connections) > MAX_CONNECTIONS:
            oldest = next(iter(self._all.waiting))
            if oldest is self and self._all.idle:
                oldest = next(iter(self._all.idle))
            oldest.give_way()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting for the caller."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read more; refuse headers that are too long before they end."""
        self._is_incomplete = True
        while data and not self.transport.is_closing():
            piece, data = data[:_PIECE_BYTES], data[_PIECE_BYTES:]
            self._overhead_bytes += len(piece)
            super().data_received(piece)
            if self._overhead_bytes > MAX_OVERHEAD_BYTES and not self.transport.is_closing():
                self.send_400_response("Headers, trailers or sizes of chunks are too long.")
        self._watch()

    def on_message_begin(self) -> None:
        """Begin a request; stop reading if the one before it is not answered yet."""
        if self._is_answering():
            raise _RefusedError
        self._is_incomplete = True
        self._all.default_headers = [(b"date", formatdate(usegmt=True).encode())]
        super().on_message_begin()
        self.scope["extensions"] = {_CONNECTION: {"protocol": self}}

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; refuse the request if there are too many, and leave out such trailers."""
        if len(self.headers) < _MAX_HEADERS:
            super().on_header(name, value)
        elif "method" not in self.scope:
            raise _RefusedError

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body, which the route that reads it bounds."""
        self._overhead_bytes += _COST_OF_TINY * (len(body) < _TINY_BYTES) - len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that the caller has sent all and waits for us."""
        self._is_incomplete = False
        self._overhead_bytes = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what was sent, but never in place of the answer to an earlier request."""
        if self._is_answering():
            self.give_way()
        else:
            super().send_400_response(msg)

    def on_response_complete(self) -> None:
        """Wait for the next request of this caller."""
        super().on_response_complete()
        self._watch()
        if self._deadline is None:
            self._all.idle[self] = None

    def pause_writing(self) -> None:
        """Wait until the caller has read."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """Go on: the caller has read."""
        super().resume_writing()
        self._watch()

    def give_way(self) -> None:
        """Close at once, however much the caller has not read."""
        self._stop_waiting()
        self.transport.abort()

    timeout_keep_alive_handler = give_way  # of a connection that was idle too long

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _watch(self) -> None:
        """Run the deadline exactly while this connection waits for its caller."""
        # A transport that is closing still waits until the caller has read what was written.
        if self._is_incomplete or self.flow.write_paused or self.transport.is_closing():
            if self._deadline is None:
                self._deadline = self.loop.call_later(CALLER_S, self.give_way)
                self._all.waiting[self] = None
                self._all.idle.pop(self, None)
        else:
            self._stop_waiting()

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self._all.waiting.pop(self, None)
        self._all.idle.pop(self, None)
