"""The suite itself: nothing leaves this machine."""

import asyncio
import socket

import pytest


def test_no_address_outside_can_be_reached() -> None:
    with (
        socket.socket() as connection,
        pytest.raises(RuntimeError, match=r"tried to reach 192\.0\.2\.1"),
    ):
        connection.connect(("192.0.2.1", 80))


async def test_no_name_outside_can_be_looked_up() -> None:
    with pytest.raises(RuntimeError, match=r"tried to reach example\.org"):
        await asyncio.open_connection("example.org", 80)


async def test_loopback_is_open() -> None:
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "localhost", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
