"""A bot as several processes, their surroundings (Redis, a model, a Telegram), and what they used.

Everything runs on loopback. The processes log into a temporary folder. Settings have their
defaults, except the send rate: with Telegram's 30 a second only that limit would be measured. To
measure a period, take two readings and their difference.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
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
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
CORES = os.cpu_count() or 1


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


@dataclass(frozen=True, slots=True)
class Reading:
    """Rising counters at one moment; `since` returns the difference to an earlier reading.

    `cpu_s` is the CPU time of each process, `machine_s` that of the whole machine. `commands`
    counts Redis commands by name, with those inside scripts. `nbytes` went over Redis' connections
    in both directions.
    """

    at: float
    sent: int
    cpu_s: Mapping[str, float]
    machine_s: float
    commands: Mapping[str, int]
    nbytes: int

    @classmethod
    async def of(cls, fleet: Fleet) -> "Reading":
        used = await fleet.redis.info("cpu")
        stats = await fleet.redis.info("stats")
        commands = await fleet.redis.info("commandstats")
        return cls(
            at=time.monotonic(),
            sent=fleet.telegram.sent,
            cpu_s={name: bot.cpu_s for name, bot in fleet.bots.items()}
            | {
                "redis": float(used["used_cpu_sys"]) + float(used["used_cpu_user"]),
                "model": fleet.model.cpu_s,
                "people_and_telegram": time.process_time(),
            },
            machine_s=_machine_s(),
            commands={
                name.removeprefix("cmdstat_"): int(said.partition("calls=")[2].partition(",")[0])
                for name, said in commands.items()
            },
            nbytes=int(stats["total_net_input_bytes"]) + int(stats["total_net_output_bytes"]),
        )

    def since(self, before: "Reading") -> "Reading":
        """Return the difference to an earlier reading."""
        return Reading(
            at=self.at - before.at,
            sent=self.sent - before.sent,
            cpu_s={name: used - before.cpu_s[name] for name, used in self.cpu_s.items()},
            machine_s=self.machine_s - before.machine_s,
            commands={
                name: calls - before.commands.get(name, 0) for name, calls in self.commands.items()
            },
            nbytes=self.nbytes - before.nbytes,
        )

    @property
    def cores(self) -> dict[str, float]:
        """For a difference: how many cores each process used, and all others together."""
        shares = {name: round(used / self.at, 3) for name, used in self.cpu_s.items()}
        others = (self.machine_s - sum(self.cpu_s.values())) / self.at
        return shares | {"everything_else": round(max(0.0, others), 3)}

    @property
    def is_processor_bound(self) -> bool:
        """For a difference: whether almost no CPU time was left, to the machine or a process."""
        busiest = max(each / self.at for each in self.cpu_s.values())
        return self.machine_s / self.at > 0.92 * CORES or busiest > 0.95


def _machine_s() -> float:
    """Return the CPU time of all cores since the machine's start in seconds, without idle time."""
    fields = Path("/proc/stat").read_text().partition("\n")[0].split()[1:]
    user, nice, system, _idle, _waiting, *interrupts = map(int, fields[:8])
    return (user + nice + system + sum(interrupts)) / _TICKS_A_SECOND
