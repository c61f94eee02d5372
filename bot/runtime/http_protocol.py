"""HTTP with bounds: no caller can fill the memory or keep connections occupied for ever.

Uvicorn bounds neither the headers nor the time in which a request must arrive. This module knows no
routes.
"""

from asyncio import TimerHandle, Transport
from typing import Any

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

log = structlog.get_logger(__name__)

REQUEST_S = 10.0
"""How long a request may take to arrive, headers and body."""
MAX_CONNECTIONS = 256
_CONNECTION = "bot.connection"
MAX_OVERHEAD_BYTES = 64 * 1024
"""All that is not body: request line, headers, trailers, sizes of chunks."""


def ignore_disconnects(app: ASGIApp) -> ASGIApp:
    """Wrap `app` so that a request ends silently if its caller disconnects before the answer.

    The event loop refuses to write then, and uvicorn would log a traceback for each such caller.
    """

    async def run(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_if_there(message: Message) -> None:
            try:
                await send(message)
            except RuntimeError as error:
                raise _GoneError from error

        try:
            await app(scope, receive, send_if_there)
        except _GoneError:
            scope["extensions"][_CONNECTION]["is_gone"]()

    return run


class _GoneError(Exception):
    """Raised when an answer can no longer be written."""


class Connections(ServerState):
    """All connections of one server, and those that wait for their caller, oldest first."""

    def __init__(self) -> None:
        super().__init__()
        self.incomplete: dict[BoundedHttpProtocol, None] = {}
        self.idle: dict[BoundedHttpProtocol, None] = {}


class BoundedHttpProtocol(HttpToolsProtocol):
    """One connection. It closes if a request arrives too slowly or its headers are too long.

    If there are too many connections, a new one replaces the oldest one that waits for its caller.
    So a caller who keeps connections open locks nobody out.
    """

    def __init__(self, *, server_state: Connections, **others: Any) -> None:
        super().__init__(server_state=server_state, **others)
        self._all = server_state
        self._deadline: TimerHandle | None = None
        self._overhead_bytes = 0

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Wait for the first request; close another connection if there are too many."""
        super().connection_made(transport)
        self._expect_request()
        if len(self.connections) > MAX_CONNECTIONS:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting for a request."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read more; refuse headers that are too long before they end."""
        self._expect_request()
        self._overhead_bytes += len(data)
        super().data_received(data)
        if self._overhead_bytes > MAX_OVERHEAD_BYTES and not self.transport.is_closing():
            log.debug("request refused", reason="headers too long")
            self.send_400_response("Request headers are too long.")

    def on_message_begin(self) -> None:
        """Start the deadline, also for a request that arrived together with the end of another."""
        self._expect_request()
        super().on_message_begin()
        self.scope["extensions"] = {_CONNECTION: {"is_gone": self._caller_is_gone}}

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body, which the route that reads it bounds."""
        self._overhead_bytes -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Stop the deadline: from now on the caller waits for us."""
        self._request_arrived()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request of this caller."""
        if not (self._deadline or self.pipeline or self.transport.is_closing()):
            self._all.idle[self] = None
        super().on_response_complete()

    def _expect_request(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_S, self._give_up)
            self._all.incomplete[self] = None
            self._all.idle.pop(self, None)

    def _request_arrived(self) -> None:
        self._overhead_bytes = 0
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
            self._all.incomplete.pop(self, None)

    def _caller_is_gone(self) -> None:
        # The loop reports it a moment later; until then uvicorn would expect an answer.
        self.cycle.disconnected = True

    def _give_up(self) -> None:
        log.debug("connection closed", reason="request incomplete")
        self.transport.abort()

    def _make_room(self) -> None:
        """Close the oldest connection that waits for its caller; this one if no other does."""
        log.debug("connection closed", reason="too many connections")
        oldest = next(iter(self._all.incomplete))
        if oldest is self and self._all.idle:
            oldest = next(iter(self._all.idle))
        oldest.give_way()

    def give_way(self) -> None:
        """Close at once, to make room for another connection."""
        self._stop_waiting()
        self.transport.abort()

    def _stop_waiting(self) -> None:
        self._request_arrived()
        self._all.idle.pop(self, None)
