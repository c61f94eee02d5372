"""The suite itself: nothing leaves this machine, and a test ends when its time is over."""

import asyncio
import signal
import socket

import pytest

from tests.conftest import LoopbackLoop
from tests.valkey import HOST, ValkeyServer


def test_no_address_outside_can_be_reached() -> None:
    with (
        socket.socket() as connection,
        pytest.raises(RuntimeError, match=r"tried to reach 192\.0\.2\.1"),
    ):
        connection.connect(("192.0.2.1", 80))


async def test_no_name_outside_can_be_looked_up() -> None:
    with pytest.raises(RuntimeError, match=r"tried to reach example\.org"):
        await asyncio.open_connection("example.org", 80)


def test_what_a_signal_fails_ends_a_test_that_waits() -> None:
    def over(*_: object) -> None:
        pytest.fail("Timeout")

    async def waits() -> None:
        asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGUSR1)
        await asyncio.wait_for(asyncio.Event().wait(), 5)

    before = signal.signal(signal.SIGUSR1, over)
    try:
        with (
            asyncio.Runner(loop_factory=LoopbackLoop) as runner,
            pytest.raises(asyncio.CancelledError, match="Timeout"),
        ):
            runner.run(waits())
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_connection_that_a_test_leaves_open_fails_it(valkey_server: ValkeyServer) -> None:
    runner = asyncio.Runner(loop_factory=LoopbackLoop)
    loop = runner.get_loop()
    runner.run(loop.create_connection(asyncio.Protocol, HOST, valkey_server.port))
    with pytest.raises(ResourceWarning, match="unclosed resource <TCPTransport"):
        runner.close()
