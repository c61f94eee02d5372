"""A web server on loopback that answers each path with prepared bytes, true or not."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

HTML = "Content-Type: text/html\r\n"
ARTICLE = (
    "<title>Sea</title><nav>Menu</nav><article><h1>Whales</h1>"
    + "<p>The blue whale is the largest animal that has ever lived.</p>" * 4
    + "</article>"
)


@dataclass(frozen=True, slots=True)
class Prepared:
    """An answer. While `repeats`, the body is sent again and again, with a pause in between."""

    head: bytes
    body: bytes
    repeats: bool = False
    pause_s: float = 0


@dataclass
class Site:
    """Answers while the block lasts; `requests` are those so far, as they came."""

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
        body: bytes,
        headers: str = HTML,
        status: str = "200 OK",
        *,
        repeats: bool = False,
        pause_s: float = 0,
    ) -> None:
        """Answer a path so; without a length in the headers the body ends with the connection."""
        head = f"HTTP/1.1 {status}\r\n{headers}Connection: close\r\n\r\n"
        self.answers[path] = Prepared(head.encode(), body, repeats, pause_s)

    def redirect(self, path: str, to: str) -> None:
        """Answer a path with another address."""
        self.put(path, b"", f"Location: {to}\r\n", "302 Found")

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request; the client may leave at any time."""
        handling = asyncio.current_task()
        assert handling
        self._handling.add(handling)
        try:
            await self._send(await reader.readuntil(b"\r\n\r\n"), writer)
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            self._handling.discard(handling)

    async def _send(self, request: bytes, writer: asyncio.StreamWriter) -> None:
        self.requests.append(request.decode())
        prepared = self.answers[self.requests[-1].split()[1]]
        writer.write(prepared.head)
        with suppress(ConnectionError):
            while True:
                writer.write(prepared.body)
                await writer.drain()
                self.sent_bytes += len(prepared.body)
                if not prepared.repeats or writer.is_closing():
                    break
                await asyncio.sleep(prepared.pause_s)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self.answer, self.host, self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for handling in self._handling:
            handling.cancel()
        await asyncio.gather(*self._handling, return_exceptions=True)
