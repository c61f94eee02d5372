"""A minimal HTTP/1.1 server for benchmarks, so that the bots get nearly all CPU time.

It reads whole requests, writes bytes, and keeps connections open. It checks nothing.
"""

import asyncio
import socket
import sys
from collections.abc import Callable
from typing import cast

import httptools

HOST = "127.0.0.1"

Handle = Callable[[str, bytes, asyncio.Transport], None]
"""Gets a request's path and body, and the transport to write the answer to, now or later."""

CHUNKED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)
LAST_CHUNK = b"0\r\n\r\n"


async def serve(handle: Handle, port: int = 0) -> asyncio.Server:
    """Answer on loopback until the server is closed; port 0 takes a free one."""
    loop = asyncio.get_running_loop()
    return await loop.create_server(lambda: _Connection(handle), HOST, port)


async def run(handle: Handle, port: int) -> None:
    """Answer until the process ends; say on stdout when it begins, as a bot does."""
    server = await serve(handle, port)
    sys.stdout.write("serving\n")
    sys.stdout.flush()
    await server.serve_forever()


def answer(transport: asyncio.Transport, body: bytes) -> None:
    """Answer 200 with JSON, unless the client has disconnected."""
    if not transport.is_closing():
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        transport.write(head % len(body) + body)


def chunk(body: bytes) -> bytes:
    """Return a piece of a chunked answer."""
    return b"%x\r\n%b\r\n" % (len(body), body)


class _Connection(asyncio.Protocol):
    """One client; the `on_` methods are the parser's."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._parser = httptools.HttpRequestParser(self)
        self._path = ""
        self._body = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by its type

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        self._body.clear()

    def on_url(self, url: bytes) -> None:
        self._path = url.decode()

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        self._handle(self._path, bytes(self._body), self._transport)
