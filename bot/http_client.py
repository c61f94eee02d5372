"""Shared by all HTTP: the trusted certificates, one corrected error, and bodies up to a bound."""

import asyncio
import ssl
from collections.abc import AsyncIterable
from functools import cache
from typing import Any

import httpx2

IDLE_S = 4.0
"""A connection that was idle for longer is not used again. Many servers close one after five
seconds. A request that is sent meanwhile gets no answer, so we cannot tell what became of it."""


@cache
def trusted() -> ssl.SSLContext:
    """Return httpx2's default TLS context; built once in a process, because that takes 45 ms."""
    return httpx2.create_ssl_context()


async def read_within(pieces: AsyncIterable[bytes], max_bytes: int) -> bytes | None:
    """Return a body, None if it is longer than `max_bytes`, whatever length was announced.

    A server may send each byte alone, which takes a thousand times as long. So there is a limit of
    pieces, too, and others go on meanwhile.
    """
    body, count = bytearray(), 0
    async for piece in pieces:
        body += piece
        count += 1
        if len(body) > max_bytes or count > 1_000 + max_bytes // 100:
            return None
        if count % 100 == 0:
            await asyncio.sleep(0)
    return bytes(body)


class HttpClient(httpx2.AsyncClient):
    """Raises httpx2's `ConnectError` also if a connection breaks while it is opened.

    httpx2 alone would raise an `AttributeError`, because uvloop has already dropped the socket when
    anyio 4 asks for the address of the other side.
    """

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request as httpx2 does."""
        try:
            return await super().send(request, **options)
        except AttributeError as error:
            if (error.name, error.obj) != ("getpeername", None):
                raise
            raise httpx2.ConnectError("closed while it was opened", request=request) from error
