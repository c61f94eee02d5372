"""The HTTP client of all calls to outside servers."""

import asyncio
import socket
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import pairwise
from threading import Thread

import httpx2
import pytest

from bot.http_client import HttpClient, read_within
from bot.model.call import Post
from bot.model.openai_client import open_client
from bot.telegram.bot_api import TelegramClient

Call = Callable[[], Awaitable[object]]

CALLS = 1_000
"""About one call in 300 met the error that the client corrects."""

RESET = struct.pack("ii", 1, 0)


async def test_a_connection_that_breaks_at_any_moment_is_an_httpx2_error() -> None:
    def reset_each() -> None:
        for _ in range(CALLS):
            connection, _ = server.accept()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            connection.close()

    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        Thread(target=reset_each, daemon=True).start()
        async with HttpClient(trust_env=False, timeout=60) as client:
            for _ in range(CALLS):
                with pytest.raises(httpx2.TransportError):
                    await client.get(f"http://127.0.0.1:{server.getsockname()[1]}/")


@asynccontextmanager
async def model_call(url: str) -> AsyncIterator[Call]:
    async with open_client(url, None, timeout_s=60) as client:
        yield lambda: client.post_whole(Post("/x", {}), 100)


@asynccontextmanager
async def telegram_call(url: str) -> AsyncIterator[Call]:
    client = TelegramClient("42:TOKEN", url)
    yield client.delete_webhook
    await client.close()


@pytest.mark.parametrize(("calling", "body"), [(model_call, b"{}"), (telegram_call, b"")])
async def test_a_connection_that_the_server_may_be_closing_is_not_used_again(
    monkeypatch: pytest.MonkeyPatch,
    calling: Callable[[str], AbstractAsyncContextManager[Call]],
    body: bytes,
) -> None:
    """A request that meets the end of an idle connection is lost, or would be sent twice."""
    connections, clock = 0, time.monotonic

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while await reader.readline():
            await reader.readuntil(b"\r\n\r\n" + body)
            writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{"result": true}')
        writer.close()

    async with (
        await asyncio.start_server(serve, "127.0.0.1", 0) as server,
        calling(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as call,
    ):
        for _ in range(2):
            await call()
        assert connections == 1
        monkeypatch.setattr(time, "monotonic", lambda: clock() + 4.5)
        await call()
        assert connections == 2


async def test_a_body_in_tiny_pieces_is_too_long_and_others_go_on_meanwhile() -> None:
    """A linked page in pieces of one byte held the loop again and again for ten seconds."""
    sent, at = 0, []

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal sent
        for sent in range(1, 100_000):  # noqa: B007 - it is read below
            yield b"a"

    reading = asyncio.create_task(read_within(pieces(), 50_000))
    while not reading.done():
        await asyncio.sleep(0)
        at.append(sent)
    assert (await reading, sent) == (None, 1_501)
    assert max(after - before for before, after in pairwise(at)) == 100
