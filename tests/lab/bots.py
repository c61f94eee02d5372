"""Bots as processes, and their surroundings: a local Telegram, a local model, a Redis.

Telegram and model run in the benchmark's own process, so they do not add to a bot's CPU time.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

from tests.acceptance.forked import Forked
from tests.acceptance.rig import start_process
from tests.servers.bot_api import BotApiServer, Chat, Person
from tests.servers.model_api import ChatRequest, ModelApiServer, Reply
from tests.valkey import ValkeyServer, free_port

ROOT = Path(__file__).parents[2]
KEY = "sk-benchmark"
EMBEDDINGS = "hashed-words"
REPLY = " ".join(f"word{number:03}" for number in range(60))
"""An answer that the local model streams in so many pieces."""

PATIENCE_S = 180
BASELINE = "tests.lab.baseline_bot"  # the bot without memory; it has no port

_STOP_S = 8
_LOG_TAIL = 3_000
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")

Process = asyncio.subprocess.Process | Forked


class Model:
    """Streams the same answer to everybody; a request for JSON gets empty values.

    `pause_s` is the time between two pieces of an answer.
    """

    pause_s = 0.0

    async def respond(self, request: ChatRequest) -> Reply:
        if request.response_format == "text":
            return Reply(REPLY, chunk_delay_s=self.pause_s)
        raw: Mapping[str, Any] = request.raw
        over_responses = request.api == "responses"
        asked = raw["text"]["format"] if over_responses else raw["response_format"]["json_schema"]
        return Reply(json.dumps(empty(asked["schema"])))


@dataclass(frozen=True, slots=True)
class Running:
    """A running bot."""

    pid: int
    port: int

    @property
    def cpu_s(self) -> float:
        """User and system time so far, in seconds; counted by the kernel in steps of 10 ms."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND

    @property
    def resident_mb(self) -> float:
        """Resident memory in MB, shared memory included."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        [line] = [line for line in status.splitlines() if line.startswith("VmRSS")]
        return round(int(line.split()[1]) / 1024, 1)

    async def ready(self) -> None:
        """Ask `/readyz` until it answers 200."""
        async with asyncio.timeout(PATIENCE_S):
            while not await self._is_ready():  # noqa: ASYNC110 - it is another process
                await asyncio.sleep(0.01)

    async def _is_ready(self) -> bool:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        writer.write(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
        return answer.startswith(b"HTTP/1.1 200")


class Died(Exception):
    """Raised when a process ended that should run; the text has the end of its log."""


class Processes:
    """Starts processes, the model first, and ends all on exit, each by its own id."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: dict[str, Process] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        died = [name for name, each in self._started.items() if each.returncode is not None]
        model, bots = [*self._started.values()][:1], [*self._started.values()][1:]
        for group in (bots, model):  # the model last: bots that end finish their turns
            await asyncio.gather(*map(_end, group))
        if died and kind is not Died:
            raise Died(self._end_of_log(died[0]))

    async def start(self, name: str, *arguments: str, environment: Mapping[str, str]) -> Running:
        """Start a process; return when `/readyz` answers 200, or at once without a port.

        Raise `Died` if it ends before or does not become ready in time.
        """
        port = int(environment.get("PORT", "0"))
        environment = {"PATH": os.environ["PATH"], "HOME": str(self._folder), **environment}
        with (self._folder / f"{name}.log").open("ab") as log:
            process = await _start(arguments, environment, log)
        self._started[name] = process
        running = Running(process.pid, port)
        if port:
            await self._until_ready(name, process, running)
        return running

    async def stop(self, name: str, *, kill: bool = False) -> None:
        """End a process, if it runs, so that it may be started again."""
        if process := self._started.pop(name, None):
            if kill:
                process.send_signal(signal.SIGKILL)
            await _end(process)

    async def _until_ready(self, name: str, process: Process, running: Running) -> None:
        ready, over = asyncio.create_task(running.ready()), asyncio.create_task(process.wait())
        await asyncio.wait({ready, over}, return_when=asyncio.FIRST_COMPLETED)
        over.cancel()
        if not ready.done():
            ready.cancel()
            raise Died(self._end_of_log(name))
        try:
            await ready
        except TimeoutError:
            raise Died(f"never ready: {self._end_of_log(name)}") from None

    def _end_of_log(self, name: str) -> str:
        return f"{name}\n{(self._folder / f'{name}.log').read_text()[-_LOG_TAIL:]}"


async def _start(arguments: Sequence[str], environment: dict[str, str], log: BinaryIO) -> Process:
    module, *command = arguments
    if module == "bot":
        return await start_process(environment, command, log=log)
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", *arguments),
        cwd=environment.get("PWD", ROOT),
        env=environment,
        stdout=log,
        stderr=log,
    )


async def _end(process: Process) -> None:
    """End a process; kill it if it takes longer than `_STOP_S`."""
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(_STOP_S):
            await process.wait()
    except TimeoutError:
        process.send_signal(signal.SIGKILL)
        await process.wait()


@dataclass(frozen=True, slots=True)
class World:
    """The surroundings of a bot: Telegram, a model, a Redis, and a folder for its files."""

    telegram: BotApiServer
    model: ModelApiServer
    valkey: ValkeyServer
    folder: Path
    api: str = "chat"
    stream: str = "drafts"
    embeddings: str = EMBEDDINGS

    def environment(self, port: int, redis: str) -> dict[str, str]:
        """Return the environment of a bot without hints; all other settings have their defaults."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "TELEGRAM_BOT_TOKEN": self.telegram.token,
            "TELEGRAM_API_URL": self.telegram.url,
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": self.model.base_url,
            "OPENAI_MODEL": "gpt-benchmark",
            "OPENAI_API": self.api,
            "STREAM": self.stream,
            "OPENAI_EMBEDDING_MODEL": self.embeddings,
            "REDIS_URL": redis,
            "PORT": str(port),
            "HINTS": "off",
        }

    def people(self, first: int, count: int) -> list[tuple[Person, Chat]]:
        persons = [self.telegram.user(first + at, f"Person {at}") for at in range(count)]
        return [(person, self.telegram.private_chat(person)) for person in persons]

    @asynccontextmanager
    async def running(self, module: str = "bot", redis: str = "") -> AsyncIterator[Running]:
        """Run a bot inside the block, which begins when it is ready."""
        port = 0 if module == BASELINE else free_port()
        environment = self.environment(port, redis or self.valkey.url)
        async with Processes(self.folder) as processes:
            yield await processes.start(module, module, environment=environment)


def empty(schema: Mapping[str, object]) -> object:
    """Return the emptiest value of a JSON schema; optional objects are filled too."""
    match schema:
        case {"properties": dict(properties)}:
            return {name: empty(inner) for name, inner in properties.items()}
        case {"anyOf": [dict(filled), *_]} if "properties" in filled:
            return empty(filled)
        case {"type": "array"}:
            return []
        case {"type": "string"}:
            return ""
        case _:
            return None
