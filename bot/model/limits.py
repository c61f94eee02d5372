"""Bounds the bodies of answers: a server may send too much, or little that unpacks to too much."""

from collections.abc import AsyncIterator
from contextlib import aclosing

import httpx2

from bot.model.model_errors import NotAModel

_MAX_ERROR_BYTES = 64 * 1024
"""The SDK reads the whole body of an error; a server needs less to say what it refuses."""
_UNCOMPRESSED = ("", "identity")


async def read_whole(response: httpx2.Response, max_bytes: int) -> bytes:
    """Return the body of an answer and close it; raise `NotAModel` when it is longer."""
    body = bytearray()
    async with aclosing(response):
        async for piece in response.aiter_raw():
            body += piece
            if len(body) > max_bytes:
                raise NotAModel("the answer is too long")
    return bytes(body)


async def bound(response: httpx2.Response) -> None:
    """Refuse a compressed body: a few bytes may unpack to gigabytes. Cut the body of an error."""
    if response.headers.get("content-encoding", "") not in _UNCOMPRESSED:
        raise httpx2.DecodingError("compressed unasked", request=response.request)
    if not response.is_success and isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Beginning(response.stream)


class _Beginning(httpx2.AsyncByteStream):
    """The first bytes of a body; the others are not read."""

    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        bytes_left = _MAX_ERROR_BYTES
        async for piece in self._body:
            yield piece[:bytes_left]
            bytes_left -= len(piece)
            if bytes_left <= 0:
                return

    async def aclose(self) -> None:
        await self._body.aclose()
