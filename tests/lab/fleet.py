"""A bot as several processes, and their surroundings: Redis, a model, a Telegram.

Everything runs on loopback. The processes log into a temporary folder. Settings have their
defaults, except the send rate: with Telegram's 30 a second only that limit would be measured.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bot.telegram.telegram import WEBHOOK_PATH
from memory.store.client import RedisClient
from tests.lab.bots import BASELINE, Processes, Running
from tests.lab.lean_http import HOST
from tests.lab.lean_telegram import TOKEN, LeanTelegram
from tests.lab.people import Posting
from tests.valkey import ValkeyServer, free_port

_SECRET = "a-secret-of-the-benchmark"


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
        bot = await processes.start("baseline", BASELINE, environment=surroundings.environment)
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
