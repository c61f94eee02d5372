"""A test ends when its time is over and when it leaves something open, also on the bot's loop."""

import asyncio
import signal

import pytest

from tests.conftest import LoopbackLoop
from tests.valkey import HOST, ValkeyServer


def test_what_a_signal_fails_ends_a_test_that_waits() -> None:
    """Before, uvloop reported the failure and a test that waited for ever did so."""

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
    """Before, the loop waited for the connection for ever when it closed."""
    runner = asyncio.Runner(loop_factory=LoopbackLoop)
    loop = runner.get_loop()
    runner.run(loop.create_connection(asyncio.Protocol, HOST, valkey_server.port))
    with pytest.raises(ResourceWarning, match="unclosed resource <TCPTransport"):
        runner.close()
