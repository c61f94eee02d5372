"""Starts bots fast: a process that has imported everything forks one for each start.

A bot so started is a process of its own, with its own environment, signals and exit status; only
the seconds of imports are not paid again. `test_starting` starts it by `python -m bot` instead.
"""

import asyncio
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from typing import NoReturn

import orjson

import bot.__main__
from memory.tokens import TokenCounter

READY = b"ready\n"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_MOST_BYTES = 2**16


def serve(path: str) -> None:
    """Answer start requests at a unix socket until standard input ends with the tests."""
    asyncio.run(TokenCounter.load())
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    sys.stdout.buffer.write(READY)
    sys.stdout.flush()
    while True:
        ready, _, _ = select.select([listener.fileno(), sys.stdin.fileno()], [], [])
        if sys.stdin.fileno() in ready:
            return
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            _watch(connection)
        connection.close()


def _watch(connection: socket.socket) -> NoReturn:
    """Fork the bot, tell its id and later its exit status; end it when its test is gone."""
    os.setsid()  # what ends the group of the tests leaves this one alive to end the bot
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    message, descriptors, _, _ = socket.recv_fds(connection, _MOST_BYTES, 1)
    child = os.fork()
    if child == 0:
        connection.close()
        environment, command = orjson.loads(message)
        _become_a_bot(environment, command, descriptors[0])
    os.close(descriptors[0])
    connection.sendall(b"%d\n" % child)
    exited = os.pidfd_open(child)
    ready, _, _ = select.select([exited, connection.fileno()], [], [])
    if exited not in ready:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if exited in ready:
        connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _become_a_bot(environment: dict[str, str], command: list[str], output: int) -> NoReturn:
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["bot", *command]
    status = 1
    try:
        status = bot.__main__.main()
    except BaseException:  # noqa: BLE001 - shown as the interpreter itself would
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


class Forked:
    """A bot that a launcher started; has what is used of an asyncio process."""

    def __init__(self, pid: int, stdout: asyncio.StreamReader, watch: Streams) -> None:
        self.pid = pid
        self.stdout = stdout
        self.returncode: int | None = None
        self._told, self._asked = watch

    @classmethod
    async def start(
        cls, launcher: str, environment: dict[str, str], command: list[str]
    ) -> "Forked":
        """Have a bot started with this environment; `command` is what follows `python -m bot`."""
        reading, writing = os.pipe()
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(launcher)
        socket.send_fds(connection, [orjson.dumps([environment, command])], [writing])
        os.close(writing)
        watch = await asyncio.open_unix_connection(sock=connection)
        stdout = asyncio.StreamReader(limit=2**22)
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stdout), os.fdopen(reading, "rb")
        )
        return cls(int(await watch[0].readline()), stdout, watch)

    def send_signal(self, number: int) -> None:
        """Send a signal; one that has ended needs none."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    async def wait(self) -> int:
        """Return the exit status once it has ended."""
        if self.returncode is None:
            self.returncode = int(await self._told.readline())
            self._asked.close()
        return self.returncode


if __name__ == "__main__":
    serve(sys.argv[1])
