"""A bot as several processes, and their surroundings: Redis, a model, a Telegram.

Everything runs on loopback. The processes log into a temporary folder. Settings have their
defaults, except the send rate: with Telegram's 30 a second only that limit would be measured.
"""

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Self

from bot.telegram.telegram import WEBHOOK_PATH
from memory.store.client import RedisClient
from tests.acceptance.forked import Forked
from tests.acceptance.rig import start_process
from tests.lab.bots import ROOT, Running
from tests.lab.lean_http import HOST
from tests.lab.lean_telegram import TOKEN, LeanTelegram
from tests.lab.posting import Posting
from tests.valkey import ValkeyServer, free_port

Process = asyncio.subprocess.Process | Forked

_SECRET = "a-secret-of-the-benchmark"
_STOP_S = 8
_LOG_TAIL = 3_000


class Died(Exception):
    """Raised when a process ended that should run; the text has the end of its log."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """Running processes and their surroundings; a bot that polls is the only worker."""

    telegram: LeanTelegram
    model: Running
    valkey: ValkeyServer
    redis: RedisClient
    workers: tuple[Running, ...]
    web: Running | None = None
    posting: Posting | None = None

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the bot's processes."""
        return environment_of(self.telegram.url, self.model.port, self.valkey.url)

    @property
    def bots(self) -> dict[str, Running]:
        """The bot's own processes by name."""
        if self.web is None:
            return {"bot": self.workers[0]}
        workers = {f"worker {number}": each for number, each in enumerate(self.workers, 1)}
        return {"web": self.web, **workers}


def environment_of(telegram_url: str, model_port: int, redis_url: str) -> dict[str, str]:
    """Return the environment of a bot between these servers, without limits and hints."""
    return {
        "TELEGRAM_BOT_TOKEN": TOKEN,
        "TELEGRAM_API_URL": telegram_url,
        "OPENAI_API_KEY": "sk-benchmark",
        "OPENAI_BASE_URL": f"http://{HOST}:{model_port}/v1",
        "OPENAI_MODEL": "gpt-load",
        "OPENAI_EMBEDDING_MODEL": "hashed-words",
        "REDIS_URL": redis_url,
        "SENDS_PER_SECOND": "0",
        "HINTS": "off",
    }


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


@asynccontextmanager
async def fleet(workers: int) -> AsyncIterator[Fleet]:
    """Run one web process and some workers inside the block."""
    async with _surroundings() as (surroundings, processes):
        common = surroundings.environment
        port = free_port()
        web = {"WEBHOOK_URL": f"http://{HOST}:{port}", "WEBHOOK_SECRET": _SECRET, "PORT": str(port)}
        started = [processes.start("web", "bot", "web", environment=common | web)]
        for number in range(1, workers + 1):
            own = common | {"PORT": str(free_port())}
            started.append(processes.start(f"worker {number}", "bot", "worker", environment=own))
        first, *others = await asyncio.gather(*started)
        async with Posting(port, WEBHOOK_PATH, _SECRET) as posting:
            yield replace(surroundings, workers=tuple(others), web=first, posting=posting)


@asynccontextmanager
async def baseline() -> AsyncIterator[Fleet]:
    """Run the bot without memory, which polls and has no port, inside the block."""
    async with _surroundings() as (surroundings, processes):
        module = "tests.lab.baseline_bot"
        bot = await processes.start("baseline", module, environment=surroundings.environment)
        yield replace(surroundings, workers=(bot,))


@asynccontextmanager
async def _surroundings() -> AsyncIterator[tuple[Fleet, Processes]]:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        valkey = ValkeyServer(folder, "--appendonly", "yes", "--appendfsync", "everysec")
        stack.callback(valkey.stop)
        valkey.start()
        redis = await RedisClient.open(valkey.url)
        stack.push_async_callback(redis.close)
        telegram = await stack.enter_async_context(LeanTelegram())
        processes = await stack.enter_async_context(Processes(folder))
        port = free_port()
        arguments = "tests.lab.lean_model", str(port)
        model = await processes.start("model", *arguments, environment={"PORT": str(port)})
        yield Fleet(telegram, model, valkey, redis, ()), processes
        if odd := telegram.odd:
            raise RuntimeError(f"{len(odd)} answers were not the model's: {odd[:3]}")


async def _start(arguments: Sequence[str], environment: dict[str, str], log: BinaryIO) -> Process:
    module, *command = arguments
    if module == "bot":
        return await start_process(environment, command, log=log)
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", *arguments), cwd=ROOT, env=environment, stdout=log, stderr=log
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
