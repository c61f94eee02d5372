"""Serves one Starlette application on this machine, inside the running event loop.

It listens on 127.0.0.1 only and refuses requests for another `Host`, so that no other web page can
reach it through DNS rebinding. It does not handle the process's signals and runs no lifespan.
"""

import asyncio
import contextlib
import socket
from collections.abc import Generator
from typing import Self

import uvicorn
from starlette.applications import Starlette
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_HOSTS = ["127.0.0.1", "localhost", "[::1]"]


class LoopbackServer:
    """Serves `app` on 127.0.0.1 from `start` to `stop`; port 0 takes a free one.

    Also an async context manager. A request still running at `stop` is cut off and cancelled.
    Started again it listens on the same port.
    """

    protocol: type[HttpToolsProtocol] = HttpToolsProtocol

    def __init__(self, app: Starlette, port: int = 0) -> None:
        self._port = port
        self._config = uvicorn.Config(
            _until_cancelled(TrustedHostMiddleware(app, _HOSTS)),
            http=self.protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
        )
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The port listened on; before `start` the one asked for."""
        return self._port

    @property
    def url(self) -> str:
        """Where the application's root is, without a slash at the end."""
        return f"http://127.0.0.1:{self._port}"

    async def start(self) -> None:
        """Return when requests are answered; raise `OSError` when the port is taken."""
        listener = _bound(self._port)
        self._port = listener.getsockname()[1]
        self._server = _Server(self._config)
        self._serving = asyncio.create_task(self._server.serve([listener]))
        ready = asyncio.create_task(self._server.ready.wait())
        await asyncio.wait({self._serving, ready}, return_when=asyncio.FIRST_COMPLETED)
        if self._serving.done():
            ready.cancel()
            await self._serving

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


def _bound(port: int) -> socket.socket:
    # asyncio sends without delay only where the protocol is named, which `create_server` leaves
    # out; each second answer on a connection would wait 40 ms for an acknowledgement.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
    except OSError:
        listener.close()
        raise
    return listener


def _until_cancelled(app: ASGIApp) -> ASGIApp:
    """Let a cancelled request end silently: uvicorn would report it as an error."""

    async def run(scope: Scope, receive: Receive, send: Send) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await app(scope, receive, send)

    return run


class _Server(uvicorn.Server):
    """Reports when it is ready, ignores signals, and does not wait for clients at the end.

    Uvicorn polls and sleeps for this, which would slow down tests that start servers.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()
        self.stopping = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    async def main_loop(self) -> None:
        await self.stopping.wait()

    async def shutdown(
        self,
        sockets: list[socket.socket] | None = None,  # noqa: ARG002 - the listeners own them
    ) -> None:
        for listener in self.servers:
            listener.close()
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)  # the handlers' connections are seen as lost first
        tasks = list(self.server_state.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield
