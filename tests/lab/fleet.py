"""A bot as several processes, their surroundings (Redis, a model, a Telegram), and what they used.

Everything runs on loopback. Settings have their defaults, except the send rate: with Telegram's 30
a second only that limit would be measured. To measure a period, take two readings and their
difference.
"""

import os
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bot.telegram.telegram import WEBHOOK_PATH
from memory.store.client import RedisClient
from tests.acceptance.bot_process import BotProcess
from tests.acceptance.rig import environment_of
from tests.lab.baseline_bot import BASELINE
from tests.lab.figures import TICKS_A_SECOND, cpu_s
from tests.lab.lean_http import HOST
from tests.lab.lean_telegram import TOKEN, LeanTelegram
from tests.lab.people import Posting
from tests.valkey import ValkeyServer, free_port, opened

_SECRET = "a-secret-of-the-benchmark"
CORES = os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Fleet:
    """Running processes and their surroundings; a bot that polls is the only worker."""

    telegram: LeanTelegram
    model: BotProcess
    redis: RedisClient
    environment: Mapping[str, str]
    workers: tuple[BotProcess, ...] = ()
    web: BotProcess | None = None
    posting: Posting | None = None

    @property
    def bots(self) -> dict[str, BotProcess]:
        """The bot's own processes by name."""
        if self.web is None:
            return {"bot": self.workers[0]}
        workers = {f"worker {number}": each for number, each in enumerate(self.workers, 1)}
        return {"web": self.web, **workers}


@asynccontextmanager
async def fleet(workers: int) -> AsyncIterator[Fleet]:
    """Run one web process and some workers inside the block."""
    async with AsyncExitStack() as stack:
        around = await stack.enter_async_context(_surroundings())
        port = free_port()
        own = {"WEBHOOK_URL": f"http://{HOST}:{port}", "WEBHOOK_SECRET": _SECRET, "PORT": str(port)}
        web = BotProcess({**around.environment, **own}, command="web")
        started = [BotProcess(around.environment, command="worker") for _ in range(workers)]
        for bot in (web, *started):
            await stack.enter_async_context(bot)
        async with Posting(port, WEBHOOK_PATH, _SECRET) as posting:
            yield replace(around, workers=tuple(started), web=web, posting=posting)


@asynccontextmanager
async def baseline() -> AsyncIterator[Fleet]:
    """Run the bot without memory, which polls and has no port, inside the block."""
    async with _surroundings() as around, BotProcess(around.environment, module=BASELINE) as bot:
        yield replace(around, workers=(bot,))


@asynccontextmanager
async def _surroundings() -> AsyncIterator[Fleet]:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        options = ("--appendonly", "yes", "--appendfsync", "everysec")
        valkey = stack.enter_context(ValkeyServer(folder, *options))
        redis = await stack.enter_async_context(opened(valkey.url))
        telegram = await stack.enter_async_context(LeanTelegram())
        environment, model = served(folder, telegram, "tests.lab.lean_model", valkey.url)
        await stack.enter_async_context(model)
        yield Fleet(telegram, model, redis, environment)
        if odd := telegram.odd:
            raise RuntimeError(f"{len(odd)} answers were not the model's: {odd[:3]}")


def served(
    folder: Path, telegram: LeanTelegram, model: str, redis: str
) -> tuple[dict[str, str], BotProcess]:
    """Return the environment of bots without a limit of sends, and their model, not started yet."""
    port = free_port()
    address = f"http://{HOST}:{port}"
    environment = environment_of(folder, telegram.url, TOKEN, f"{address}/v1", redis)
    environment |= {"OPENAI_MODEL": "gpt-load", "SENDS_PER_SECOND": "0", "PORT": "0"}
    return environment, BotProcess(environment, module=model, command=str(port))


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
            cpu_s={name: cpu_s(bot.pid) for name, bot in fleet.bots.items()}
            | {
                "redis": float(used["used_cpu_sys"]) + float(used["used_cpu_user"]),
                "model": cpu_s(fleet.model.pid),
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
    return (user + nice + system + sum(interrupts)) / TICKS_A_SECOND
