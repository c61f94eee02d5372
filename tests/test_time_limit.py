"""The time limit of a test ends it, also on the bot's event loop."""

import asyncio
import signal

import pytest

from tests.conftest import LoopbackLoop


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
