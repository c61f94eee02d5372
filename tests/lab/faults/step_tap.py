"""A proxy between one process and Redis that stops the process before a step of its choice."""

import asyncio
from collections.abc import Callable

from tests.lab.wire_tap import RoundTrip, WireTap

StopsBefore = Callable[[RoundTrip], bool]


class StepTap(WireTap):
    """Keeps back one request, so that all before it has happened and nothing after it.

    When it is `reached`, kill the process; then `let_go`.
    """

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.reached = asyncio.Event()
        self._stops_before: StopsBefore | None = None
        self._is_over = asyncio.Event()

    def stop(self, before: StopsBefore) -> None:
        """Keep back the first request for which `before` is true."""
        self.reached, self._is_over = asyncio.Event(), asyncio.Event()
        self._stops_before = before

    def let_go(self) -> None:
        """Keep no request back; a connection with such a request ends without it."""
        self._stops_before = None
        self._is_over.set()

    async def hold(self, sent: bytes) -> None:
        """Keep back this data if it is the request."""
        if self._stops_before and self._stops_before(RoundTrip(sent)):
            self._stops_before = None
            self.reached.set()
            await self._is_over.wait()
            raise ConnectionResetError("the process was killed before this step")
