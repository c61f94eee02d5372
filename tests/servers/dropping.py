"""A local server whose handlers can cut their own connection."""

from starlette.requests import Request
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from bot.playground.loopback import LoopbackServer

_ABORT = "loopback.abort"


class _AbortableProtocol(HttpToolsProtocol):
    """Lets a handler cut its own connection, which ASGI cannot express."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {_ABORT: {"abort": self.transport.abort}}


class DroppingServer(LoopbackServer):
    """Serves an application on 127.0.0.1; its handlers may call `drop_connection`."""

    protocol = _AbortableProtocol


async def drop_connection(request: Request) -> None:
    """Cut the connection that carries `request`, as a network failure would."""
    request.scope["extensions"][_ABORT]["abort"]()
    await until_disconnect(request)


async def until_disconnect(request: Request) -> None:
    """Return when the client disconnects or the server stops; tests hang a call with it."""
    while (await request.receive())["type"] != "http.disconnect":
        pass  # what is left of the request's body
