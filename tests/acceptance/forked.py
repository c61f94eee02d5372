"""A bot that `launcher` has started, and the request for it."""

import asyncio
import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress

import orjson

_START_S = 20

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Forked:
    """A bot that a launcher started; it has the used part of an asyncio process."""

    def __init__(self, pid: int, output: Streams, watch: Streams) -> None:
        self.pid = pid
        self.stdout, self._output = output
        self.returncode: int | None = None
        self._told, self._asked = watch

    @classmethod
    async def start(
        cls,
        launcher: str,
        environment: Mapping[str, str],
        command: Sequence[str],
    ) -> "Forked":
        """Start a bot with this environment; `command` follows `python -m bot`."""
        ours, output = socket.socketpair()
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(launcher)
        with output:
            asked = orjson.dumps([environment, [*command]])
            socket.send_fds(connection, [asked], [output.fileno()])
        watch = await asyncio.open_unix_connection(sock=connection)
        stream = await asyncio.open_unix_connection(sock=ours, limit=2**22)
        async with asyncio.timeout(_START_S):
            return cls(int(await watch[0].readline()), stream, watch)

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    async def wait(self) -> int:
        """Wait for the end; return the exit status."""
        if self.returncode is None:
            self.returncode = int(await self._told.readline())
            self._asked.close()
            self._output.close()
        return self.returncode
