"""A web server on loopback that answers each path with prepared bytes, true or not."""

import asyncio
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import repeat
from typing import Self

HTML = "Content-Type: text/html\r\n"
ARTICLE = (
    "<title>Sea</title><nav>Menu</nav><article><h1>Whales</h1>"
    + "<p>The blue whale is the largest animal that has ever lived.</p>" * 4
    + "</article>"
)
ANY = ""  # the path of the answer for all paths that have none of their own

Body = Callable[[], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class Prepared:
    """An answer; its pieces are sent with a pause in between, then the connection is closed."""

    head: bytes
    pieces: Body
    pause_s: float = 0


@dataclass
class Site:
    """Answers while the block lasts; `requests` are those so far, as they came.

    `sent_bytes` counts what the clients read of bodies.
    """

    host: str = "127.0.0.1"
    port: int = 0
    answers: dict[str, Prepared] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    sent_bytes: int = 0
    _handling: set[asyncio.Task[object]] = field(default_factory=set)

    def at(self, path: str, host: str = "site.test") -> str:
        return f"http://{host}:{self.port}{path}"

    def put(
        self,
        path: str,
        body: bytes | Body,
        headers: str = HTML,
        status: str = "200 OK",
        *,
        repeats: bool = False,
        pause_s: float = 0,
    ) -> None:
        """Answer a path so; without a length in the headers the body ends with the connection.

        While it `repeats`, the body is sent again and again.
        """
        head = f"HTTP/1.1 {status}\r\n{headers}Connection: close\r\n\r\n"
        pieces = body if callable(body) else lambda: repeat(body) if repeats else [body]
        self.answers[path] = Prepared(head.encode(), pieces, pause_s)

    def redirect(self, path: str, to: str) -> None:
        """Answer a path with another address."""
        self.put(path, b"", f"Location: {to}\r\n", "302 Found")

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request; the client may leave at any time."""
        handling = asyncio.current_task()
        assert handling
        self._handling.add(handling)
        try:
            request = await reader.readuntil(b"\r\n\r\n")
            length = request.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length or 0))
            with suppress(ConnectionError, RuntimeError):  # uvloop's own
                await self._send(request.decode(), writer)
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            self._handling.discard(handling)

    async def _send(self, request: str, writer: asyncio.StreamWriter) -> None:
        self.requests.append(request)
        path = request.split()[1]
        prepared = self.answers[path if path in self.answers else ANY]
        writer.write(prepared.head)
        for number, piece in enumerate(prepared.pieces()):
            if writer.is_closing():
                break
            writer.write(piece)
            await writer.drain()
            self.sent_bytes += len(piece)
            # Otherwise this server would block the loop until a buffer is full.
            if prepared.pause_s or not number % 64:
                await asyncio.sleep(prepared.pause_s)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self.answer, self.host, self.port)
        [listener] = self._server.sockets
        # Connections inherit it. Otherwise Linux lets a socket grow, and `sent_bytes` with it.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**18)
        self.port = listener.getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for handling in self._handling:
            handling.cancel()
        await asyncio.gather(*self._handling, return_exceptions=True)
