"""A model server that answers with any bytes, and counts how many the client read."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

STREAM = b"content-type: text/event-stream\r\n"
MB = 2**20


@dataclass(frozen=True, slots=True)
class Answer:
    """Head and body of an answer; the connection is closed after it."""

    head: bytes
    body: Callable[[], Iterable[bytes]]

    @classmethod
    def streamed(cls, body: Callable[[], Iterable[bytes]], extra: bytes = b"") -> "Answer":
        return cls(b"HTTP/1.1 200 OK\r\n" + STREAM + extra, body)

    @classmethod
    def whole(cls, body: Callable[[], Iterable[bytes]], status: bytes = b"200 OK") -> "Answer":
        return cls(b"HTTP/1.1 " + status + b"\r\ncontent-type: application/json\r\n", body)


class HostileServer:
    """Gives the same answer to every request; `taken` counts the bytes that the client read."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.asked = 0
        self.taken = 0
        self.open: set[asyncio.StreamWriter] = set()
        self.port = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open.add(writer)
        with suppress(ConnectionError, asyncio.IncompleteReadError, RuntimeError):  # uvloop's own
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length or 0))
            self.asked += 1
            writer.write(self._answer.head + b"connection: close\r\n\r\n")
            for number, piece in enumerate(self._answer.body()):
                writer.write(piece)
                await writer.drain()
                self.taken += len(piece)
                # Otherwise this server would block the loop until a buffer is full.
                if not number % 64:
                    await asyncio.sleep(0)
        writer.close()


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[HostileServer]:
    """Yield a server that runs while the block lasts."""
    hostile = HostileServer(answer)
    server = await asyncio.start_server(hostile.handle, "127.0.0.1", 0)
    # Inherited by each connection. Otherwise Linux lets a socket grow, and `taken` with it.
    server.sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MB // 4)
    hostile.port = server.sockets[0].getsockname()[1]
    try:
        yield hostile
    finally:
        server.close()
        for writer in hostile.open:
            if not writer.is_closing():
                writer.transport.abort()
