"""The HTTP client of all calls to outside servers."""

import socket
import struct
from collections.abc import AsyncIterator
from threading import Thread

import httpx2
import pytest

from bot.http_client import HttpClient

CALLS = 1_000
"""About one call in 300 met the error that the client corrects."""

RESET = struct.pack("ii", 1, 0)


@pytest.fixture
async def resetting() -> AsyncIterator[str]:
    """Give the address of a server that resets each connection at once."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:

        def serve() -> None:
            for _ in range(CALLS):
                connection, _ = server.accept()
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                connection.close()

        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"


async def test_a_connection_that_breaks_at_any_moment_is_an_httpx2_error(resetting: str) -> None:
    async with HttpClient(trust_env=False, timeout=60) as client:
        for _ in range(CALLS):
            with pytest.raises(httpx2.TransportError):
                await client.get(resetting)
