"""A local server whose handlers can cut their own connection; it starts and stops at once.

Uvicorn alone polls and sleeps for this, which would slow down tests that start servers.
"""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_ABORT = "loopback.abort"


class _AbortableProtocol(HttpToolsProtocol):
    """Lets a handler cut its own connection, which ASGI cannot express."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {_ABORT: {"abort": self.transport.abort}}


class DroppingServer:
    """Serves `app` on 127.0.0.1 from `start` to `stop`; its handlers may call `drop_connection`.

    Started again it listens on the same port.
    """

    def __init__(self, app: Starlette) -> None:
        self.port = 0
        self._config = uvicorn.Config(
            _until_cancelled(app),
            http=_AbortableProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
        )
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """Where the application's root is, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Return when requests are answered."""
        # With a named protocol asyncio sends without delay.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        self.port = listener.getsockname()[1]
        self._server = _Server(self._config)
        self._serving = asyncio.create_task(self._server.serve([listener]))
        await self._server.ready.wait()

    async def stop(self) -> None:
        """Cut every connection; no handler runs any more when this returns."""
        if self._server is None or self._serving is None:
            return
        self._server.stopping.set()
        await self._serving
        self._server = self._serving = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()


def _until_cancelled(app: ASGIApp) -> ASGIApp:
    """Let a cancelled request end silently: uvicorn would report it as an error."""

    async def run(scope: Scope, receive: Receive, send: Send) -> None:
        with suppress(asyncio.CancelledError):
            await app(scope, receive, send)

    return run


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready, self.stopping = asyncio.Event(), asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    async def main_loop(self) -> None:
        await self.stopping.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002 - the listeners own them
        for listener in self.servers:
            listener.close()
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)  # the handlers' connections are seen as lost first
        tasks = list(self.server_state.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def drop_connection(request: Request) -> None:
    """Cut the connection that carries `request`, as a network failure would."""
    request.scope["extensions"][_ABORT]["abort"]()
    await until_disconnect(request)


async def until_disconnect(request: Request) -> None:
    """Return when the client disconnects or the server stops; tests hang a call with it."""
    while (await request.receive())["type"] != "http.disconnect":
        pass  # what is left of the request's body
