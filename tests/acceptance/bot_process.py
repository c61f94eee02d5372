"""The bot as a process of its own, and the lines of its log."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fcntl import LOCK_EX, flock
from functools import partial
from pathlib import Path
from subprocess import run
from typing import Any, ClassVar, Self

import orjson

ROOT = Path(__file__).parents[2]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_START_S, _FORKED_S = 60, 20


class Forked:
    """A bot that a launcher started; it has the used part of an asyncio process."""

    def __init__(self, pid: int, output: Streams, watch: Streams) -> None:
        self.pid = pid
        self.stdout, self._output = output
        self.returncode: int | None = None
        self._told, self._asked = watch

    @classmethod
    async def start(
        cls, launcher: str, environment: Mapping[str, str], command: Sequence[str]
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
        async with asyncio.timeout(_FORKED_S):
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


class BotProcess:
    """One bot, whose log is read line by line.

    A launcher forks it if there is one, otherwise `python -m bot` starts it. `command` follows
    that, such as `web`. If a `module` is named, Python starts it, and nothing is forked. The bot
    runs in the folder that `PWD` names. An `async with` block starts it and stops it, and fails if
    it has ended before.
    """

    launcher: ClassVar[Callable[[Mapping[str, str]], str] | None] = None

    def __init__(
        self, environment: Mapping[str, str], *, command: str = "", module: str = ""
    ) -> None:
        self._environment = environment
        self._command = command.split()
        self._module = module
        self._process: asyncio.subprocess.Process | Forked | None = None
        self._reading: asyncio.Task[None] | None = None
        self._news = asyncio.Condition()
        self.log: list[dict[str, Any]] = []
        self.raw: list[str] = []

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        assert await self.stop() in (0, -signal.SIGTERM), "\n".join(self.raw[-30:])

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it was started and its end was not seen yet."""
        return self._process is not None and self._process.returncode is None

    def peak_mb(self) -> int:
        """Return the most memory that the bot's process has taken so far (Linux)."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) // 1024

    def cpu_s(self) -> float:
        """Return the CPU time of the bot's main thread, which runs the event loop (Linux)."""
        return int(Path(f"/proc/{self.pid}/schedstat").read_text().split()[0]) / 1e9

    async def start(self, *, until: str = "serving") -> None:
        """Start the bot; return when the log reports `until`."""
        seen = len(self.log)
        self._process = await _started(self._environment, self._command, self._module)
        self._reading = asyncio.create_task(self._read())
        await self.wait_for_log(until, after=seen, timeout_s=_START_S)

    async def stop(self) -> int:
        """End the bot as a platform does; return its exit status."""
        return await self._end(signal.SIGTERM)

    async def kill(self) -> None:
        """End the bot as a crash does."""
        await self._end(signal.SIGKILL)

    def hang_up(self) -> None:
        """Send the signal at which servers read their settings again."""
        self._signal(signal.SIGHUP)

    def pause(self) -> None:
        """Stop the bot anywhere, as a suspended machine does."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    async def exit_status(self, within_s: float = _START_S) -> int:
        """Wait until the bot ends by itself; return its exit status."""
        assert self._process
        assert self._reading
        async with asyncio.timeout(within_s):
            await self._reading
            return await self._process.wait()

    async def wait_for_log(
        self, event: str, *, after: int = 0, timeout_s: float = 60, **fields: object
    ) -> dict[str, Any]:
        """Return the first line from `after` on that reports `event`, with these fields."""
        try:
            async with asyncio.timeout(timeout_s), self._news:
                found = await self._news.wait_for(lambda: self.lines(event, after=after, **fields))
        except TimeoutError:
            raise TimeoutError(f"no {event!r} in the log:\n" + "\n".join(self.raw[-30:])) from None
        return found[0]

    def lines(self, event: str, *, after: int = 0, **fields: object) -> list[dict[str, Any]]:
        """Return all lines from `after` on that report `event`, with these fields."""
        wanted = {"event": event, **fields}.items()
        return [line for line in self.log[after:] if wanted <= line.items()]

    async def wait_until(self, is_true: Callable[[], bool], timeout_s: float = 60) -> None:
        """Wait until a condition holds; it is checked after every line of the log."""
        async with asyncio.timeout(timeout_s), self._news:
            await self._news.wait_for(is_true)

    def check_log(self) -> None:
        """Fail if the log holds an unhandled error or a secret."""
        text = "\n".join(self.raw)
        assert "Traceback" not in text, text[-4000:]
        for name in ("OPENAI_API_KEY", "TELEGRAM_BOT_TOKEN"):
            secret = self._environment[name]
            assert not secret or secret not in text

    async def _end(self, number: signal.Signals) -> int:
        if self._process is None or self._process.returncode is not None:
            return self._process.returncode or 0 if self._process else 0
        self._signal(number)
        try:
            return await self.exit_status(60)
        except TimeoutError:
            # A process that is left alive would keep the event loop of its test from closing.
            self._signal(signal.SIGKILL)
            await self._process.wait()
            raise TimeoutError("the bot did not end:\n" + "\n".join(self.raw[-30:])) from None

    def _signal(self, number: signal.Signals) -> None:
        assert self._process
        self._process.send_signal(number)

    async def _read(self) -> None:
        assert self._process
        assert self._process.stdout
        async for raw in self._process.stdout:
            line = raw.decode().rstrip()
            try:
                entry = orjson.loads(line)
            except orjson.JSONDecodeError:
                entry = {"event": line}
            async with self._news:
                self.raw.append(line)
                self.log.append(entry)
                self._news.notify_all()


async def run_command(
    environment: Mapping[str, str], *command: str, from_scratch: bool = False
) -> tuple[int, str]:
    """Run a command, such as `check`, to its end, forked if possible; return status and output."""
    process = await _started(environment, command, "bot" if from_scratch else "")
    assert process.stdout
    output = await process.stdout.read()
    return await process.wait(), output.decode()


async def _started(
    environment: Mapping[str, str], command: Sequence[str], module: str
) -> asyncio.subprocess.Process | Forked:
    if BotProcess.launcher and not module:
        preloading = {k: v for k, v in environment.items() if k.startswith(("LD_", "FAKETIME"))}
        return await Forked.start(BotProcess.launcher(preloading), environment, command)
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module or "bot", *command),
        cwd=environment.get("PWD", ROOT),
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        limit=2**22,
    )


def fork_bots(folder: Path, user: int) -> None:
    """Have bots forked from now on, if the system can supervise forks.

    All test workers that name the same folder share the launcher. It ends with the process `user`.
    """
    if hasattr(os, "pidfd_open"):
        BotProcess.launcher = partial(_launcher, folder, user)
        BotProcess.launcher({})


def _launcher(folder: Path, user: int, preloading: Mapping[str, str]) -> str:
    """Return the socket of the launcher with this part of its environment, which is started once.

    A library can only be preloaded at the start of a process.
    """
    path = folder / ("preloading-launcher" if preloading else "launcher")
    with path.with_suffix(".lock").open("w") as lock:
        flock(lock, LOCK_EX)
        if not path.exists():
            command = [sys.executable, "-m", "tests.acceptance.launcher", str(path), str(user)]
            # It returns when the launcher waits for requests.
            run(command, cwd=ROOT, env={**os.environ, **preloading}, check=True)
    return str(path)
