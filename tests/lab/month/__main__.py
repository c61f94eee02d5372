"""Runs a month of many chats in an hour: what is lost, what grows, what is left at the end.

    python -m tests.lab.month [--chats 10000] [--turns 200000] [--days 30] [--seconds 3600]

A web process, four workers and one Redis of 1 GB with an append-only file. Each "day" is a part of
the turns, at the machine's full speed, and begins with a deploy while people talk: all processes
but the last worker are replaced, one after the other; that one shows what grows. On the way
processes are killed, Redis is full, Redis fails over to a replica, and a backup is saved, which is
restored into another Redis at the end. `--seconds` ends the month early; the report says how much
was played. Times are real: a day is as long as its turns take, so what depends on hours or days,
such as `MEMORY_TTL_DAYS`, does not happen here.

The report is JSON: one line for each day on stderr, and the whole at the end on stdout. The exit
status is 1 if a promise was broken.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import NamedTuple

import httpx2

from bot.telegram.webhook import WEBHOOK_PATH
from memory.store.client import RedisClient
from tests.lab.bots import Running
from tests.lab.fleet import Processes
from tests.lab.lean_http import HOST
from tests.lab.lean_telegram import TOKEN, Update
from tests.lab.month.audit import audit
from tests.lab.month.people import MonthTelegram, Place
from tests.valkey import ValkeyServer, free_port

WORKERS = 4
STRIKES = ("kill a worker", "", "full", "kill web", "", "backup", "failover", "", "kill Redis")
"""What happens on each of nine days in turn."""

PATIENCE_S = 120
TTL_DAYS = 90
TTL_S = TTL_DAYS * 86_400
_TALKING = 48
_SECRET = "a-secret-of-the-month"
_REDIS_MB = 1_000
_BOT_ID = int(TOKEN.partition(":")[0])
_AGAIN_S = 0.3
_QUIET_S = 8
PRICE_IN, PRICE_OUT = 0.25, 2.0
"""Dollars for a million tokens of a small model, as the list prices of 2026 say."""

Figures = dict[str, object]


class Size(NamedTuple):
    """How much is played."""

    chats: int
    turns: int
    days: int
    seconds: float


@dataclass
class Month:
    """All that runs, and what happened."""

    size: Size
    folder: Path
    telegram: MonthTelegram
    processes: Processes
    valkey: ValkeyServer
    random: Random = field(default_factory=lambda: Random(1))
    places: list[Place] = field(default_factory=list)
    running: dict[str, Running] = field(default_factory=dict)
    http: httpx2.AsyncClient = field(default_factory=lambda: httpx2.AsyncClient(timeout=60))
    settings: dict[str, str] = field(default_factory=dict)
    days: list[Figures] = field(default_factory=list)
    turns: int = 0
    refused: int = 0
    struck: list[str] = field(default_factory=list)

    async def play(self) -> None:
        """Play all days, or as many as there is time for."""
        ends = time.monotonic() + self.size.seconds
        model = await self.processes.start(
            "model",
            "tests.lab.month.model",
            str(port := free_port()),
            environment={"PORT": str(port)},
        )
        self.running["model"] = model
        self.settings = self._environment(port)
        self.places = [Place(number) for number in range(self.size.chats)]
        await self.deploy(0)
        for day in range(self.size.days):
            if time.monotonic() > ends:
                break
            strike = asyncio.create_task(self.strike(day))
            await self.talk(self.size.turns // self.size.days, ends)
            await strike
            await self._note(day)
        await self._until(lambda: not self.reminders_missing())
        await asyncio.sleep(_QUIET_S)

    def reminders_missing(self) -> int:
        """Return how many reminders that are due did not come."""
        kept = [each for each in self.places if not each.forgotten]
        return sum(each.reminders_missing(time.time()) for each in kept)

    def _environment(self, model_port: int) -> dict[str, str]:
        return {
            "TELEGRAM_BOT_TOKEN": TOKEN,
            "HINTS": "off",
            "TELEGRAM_API_URL": self.telegram.url,
            "OPENAI_API_KEY": "sk-month",
            "OPENAI_BASE_URL": f"http://{HOST}:{model_port}/v1",
            "OPENAI_MODEL": "gpt-load",
            "OPENAI_EMBEDDING_MODEL": "hashed-words",
            "REDIS_URL": self.valkey.url,
            "REDIS_MEMORY_MB": str(_REDIS_MB),
            "MEMORY_TTL_DAYS": str(TTL_DAYS),
            "WEBHOOK_SECRET": _SECRET,
            "LOG_FORMAT": "json",
            "SENDS_PER_SECOND": "0",
            "COALESCE_S": "0",
        }

    async def deploy(self, day: int) -> None:
        """Replace every process, one after the other; the last worker only every nine days."""
        for name in ("web", *(f"worker {number}" for number in range(1, WORKERS + 1))):
            if name != f"worker {WORKERS}" or day % len(STRIKES) == 0:
                await self.replace(name)

    async def replace(self, name: str, *, kill: bool = False) -> None:
        """End a process, if it runs, and start it again."""
        await self.processes.stop(name, kill=kill)
        port = free_port()
        own = {"PORT": str(port)}
        if name == "web":
            own["WEBHOOK_URL"] = f"http://{HOST}:{port}"
        duty = name.partition(" ")[0]
        self.running[name] = await self.processes.start(
            name, "bot", duty, environment=self.settings | own
        )

    async def deliver(self, update: Update) -> None:
        """Post an update until it is taken in, as Telegram does."""
        headers = {"X-Telegram-Bot-Api-Secret-Token": _SECRET}
        while True:
            url = f"http://{HOST}:{self.running['web'].port}{WEBHOOK_PATH}"
            try:
                answer = await self.http.post(url, json=update, headers=headers)
                if answer.is_success:
                    return
            except httpx2.HTTPError:
                pass  # it is replaced now
            self.refused += 1
            await asyncio.sleep(_AGAIN_S)

    async def talk(self, turns: int, ends: float) -> None:
        """Let people have so many turns; some chats are busier than others."""
        weights = list(accumulate(1 + 1_000 / (1 + each.number) for each in self.places))
        busy: set[int] = set()
        left = turns

        async def one() -> None:
            nonlocal left
            while left > 0 and time.monotonic() < ends:
                [place] = self.random.choices(self.places, cum_weights=weights)
                if place.number in busy:
                    await asyncio.sleep(0)
                    place = self.random.choice(self.places)
                if place.number in busy or place.forgotten:
                    await asyncio.sleep(0.01)
                    continue
                left -= 1
                busy.add(place.number)
                await self.visit(place)
                busy.discard(place.number)

        await asyncio.gather(*(one() for _ in range(min(_TALKING, self.size.chats))))

    async def visit(self, place: Place) -> None:
        """Let one person write once: a text, sometimes an edit, rarely `/forget`."""
        chance = self.random.random()
        if chance < 1 / 300 and place.kind == "private" and place.said:
            await self.forget(place)
            return
        text, marker = next(self.telegram.texts(place, self.random))
        update = self.telegram.update(place, text)
        place.said.append(marker)
        await self.deliver(update)
        self.telegram.expect_reminder(place, text)
        apologies = place.apologies
        await self._until(lambda: place.answered[marker] > 0 or place.apologies > apologies)
        self.turns += 1
        if chance > 0.98 and "Remind" not in text:
            _, new = next(self.telegram.texts(place, self.random))
            await self.deliver(self.telegram.edited(update, marker, new))

    async def forget(self, place: Place) -> None:
        """Let a person erase all their data."""
        self.telegram.buttons.pop(place.id, None)
        await self.deliver(self.telegram.update(place, "/forget"))
        await self._until(lambda: bool(self.telegram.buttons.get(place.id, (0, ""))[0]))
        message_id, pressed = self.telegram.buttons.get(place.id, (0, ""))
        if pressed:
            place.forgotten = True
            place.due.clear()
            await self.deliver(self.telegram.press(place, message_id, pressed))

    async def _until(self, is_so: Callable[[], bool]) -> None:
        """Wait until the bot has done something, which only its requests show."""
        ends = time.monotonic() + PATIENCE_S
        while not is_so() and time.monotonic() < ends:  # noqa: ASYNC110
            await asyncio.sleep(0.02)

    async def strike(self, day: int) -> None:
        """Do to the processes what a day brings, while people talk."""
        if day:
            await self.deploy(day)
        chosen = STRIKES[day % len(STRIKES)]
        self.struck += [chosen] if chosen else []
        match chosen:
            case "kill a worker":
                await self.replace("worker 1", kill=True)
            case "kill web":
                await self.replace("web", kill=True)
            case "full":
                used = self._info("memory", "used_memory")
                self.valkey.ask(f"CONFIG SET maxmemory {used}")
                await asyncio.sleep(3)
                self.valkey.ask(f"CONFIG SET maxmemory {_REDIS_MB}mb")
            case "kill Redis":
                await asyncio.to_thread(self.valkey.kill)
                await asyncio.to_thread(self.valkey.start)
            case "failover":
                await self._fail_over()
            case "backup":
                await self.command("backup", str(self.folder / "month.backup"), **self.settings)

    async def _fail_over(self) -> None:
        """Let a replica take over at the address of the primary, which is gone for good."""
        replica = _redis(self.folder, f"replica {len(self.struck)}")
        await asyncio.to_thread(replica.start)
        replica.ask(f"REPLICAOF {HOST} {self.valkey.port}")
        while b"master_link_status:up" not in replica.ask("INFO replication"):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        # A planned failover, as before maintenance: writes wait, and none is lost.
        self.valkey.ask("CLIENT PAUSE 20000 WRITE")
        offset = b"master_repl_offset:%d" % self._info("replication", "master_repl_offset")
        while offset not in replica.ask("INFO replication"):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        replica.ask("REPLICAOF NO ONE")
        await asyncio.to_thread(self.valkey.kill)
        await asyncio.to_thread(replica.stop)
        replica.move_to(self.valkey.port)
        await asyncio.to_thread(replica.start)
        self.valkey = replica

    def _info(self, section: str, name: str) -> int:
        lines = self.valkey.ask(f"INFO {section}").decode().splitlines()
        return int(next(each for each in lines if each.startswith(f"{name}:")).partition(":")[2])

    async def command(self, *arguments: str, **settings: str) -> None:
        """Run a command of the bot to its end; raise `RuntimeError` if it fails."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bot", *arguments),
            env={"PATH": "", "HOME": str(self.folder), **settings},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await process.communicate()
        if process.returncode:
            raise RuntimeError(said.decode()[-2_000:])

    async def _note(self, day: int) -> None:
        files = sum(each.stat().st_size for each in self.valkey.folder.rglob("*") if each.is_file())
        self.days.append(
            {
                "day": day + 1,
                "at": time.time(),
                "turns": self.turns,
                "resident_mb": {name: each.resident_mb for name, each in self.running.items()},
                "redis_mb": round(self._info("memory", "used_memory") / 2**20, 1),
                "disk_mb": round(files / 2**20, 1),
                "struck": self.struck[-1:] or [""],
            }
        )
        sys.stderr.write(json.dumps(self.days[-1]) + "\n")

    async def report(self) -> Figures:
        """Return all figures; `complaints` is empty if no promise was broken."""
        played = [each for each in self.places if each.said]
        kept = [each for each in played if not each.forgotten]
        url = f"http://{HOST}:{self.running['model'].port}/stats"
        asked = (await self.http.get(url)).json()
        apologised = sum(each.apologies for each in kept)
        lost = sum(max(0, len(each.missing()) - each.apologies) for each in kept)
        doubled = sum(n - 1 for each in kept for n in each.answered.values() if n > 1)
        late = sorted(s for each in kept for s in each.late_s) or [0.0]
        redis = await RedisClient.open(self.valkey.url)
        known = frozenset().union(*(each.scopes for each in self.places))
        gone = [each.word for each in played if each.forgotten]
        found = await audit(redis, _BOT_ID, known, gone, TTL_S)
        await redis.close()
        restored = await self._restored(known, gone)
        cost = (asked["tokens_in"] * PRICE_IN + asked["tokens_out"] * PRICE_OUT) / 1e6
        complaints = dict(found.complaints) | {f"restored: {k}": v for k, v in restored.items()}
        disorder = sum(each.disorder() for each in kept)
        complaints |= {
            "lost": lost,
            "out of order": disorder,
            "reminders missing": self.reminders_missing(),
        }
        return {
            "chats": len(played),
            "turns": self.turns,
            "forgotten": len(gone),
            "posted again": self.refused,
            "struck": self.struck,
            "lost": lost,
            "apologised": apologised,
            "doubled": doubled,
            "out of order": disorder,
            "reminders": len(late),
            "late_s": [round(late[len(late) // 2], 1), round(late[-1], 1)],
            "days": self.days,
            "bytes_a_message": round(sum(found.nbytes.values()) / max(1, 2 * self.turns)),
            "model": asked,
            "dollars_a_person": round(cost / max(1, len(played)), 5),
            "keys": dict(found.keys.most_common()),
            "logged": self._logged(),
            "complaints": {name: count for name, count in complaints.items() if count},
        }

    def _logged(self) -> dict[str, int]:
        """Return how often the processes logged each warning and error."""
        lines = [
            line for file in self.folder.glob("w*.log") for line in file.read_text().splitlines()
        ]
        said = [json.loads(line) for line in lines if line.startswith("{")]
        counts = Counter(
            f"{each['event']} {each.get('reason') or each.get('error') or ''}".strip()
            for each in said
            if each["level"] in ("error", "critical", "warning") and "loop" not in each["event"]
        )
        return dict(counts.most_common(30))

    async def _restored(self, known: frozenset[str], gone: list[str]) -> dict[str, int]:
        """Restore the backup and the journal of later erasures into an empty Redis; audit it."""
        if not (self.folder / "month.backup").exists():
            return {}
        journal = str(self.folder / "month.journal")
        await self.command("backup", journal, "--journal", **self.settings)
        other = _redis(self.folder, "restored")
        with other:
            settings = self.settings | {"REDIS_URL": other.url}
            await self.command("restore", str(self.folder / "month.backup"), journal, **settings)
            redis = await RedisClient.open(other.url)
            found = await audit(redis, _BOT_ID, known, gone, TTL_S)
            await redis.close()
        return dict(found.complaints) | ({} if found.keys["log"] else {"nothing": 1})


def _redis(folder: Path, name: str) -> ValkeyServer:
    (folder / name).mkdir()
    options = ("--appendonly", "yes", "--appendfsync", "everysec")
    return ValkeyServer(folder / name, *options, "--maxmemory", f"{_REDIS_MB}mb")


async def run(size: Size) -> Figures:
    """Play a month and return its report."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        valkey = _redis(folder, "redis")
        valkey.start()
        telegram = await stack.enter_async_context(MonthTelegram())
        processes = await stack.enter_async_context(Processes(folder))
        month = Month(size, folder, telegram, processes, valkey)
        stack.push_async_callback(month.http.aclose)
        stack.callback(lambda: month.valkey.stop())  # noqa: PLW0108 - a replica may run instead
        await month.play()
        return await month.report()


def main() -> int:
    """Play, print the report, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.month", description=__doc__)
    parser.add_argument("--chats", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=200_000)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=3_600)
    given = parser.parse_args()
    report = asyncio.run(run(Size(given.chats, given.turns, given.days, given.seconds)))
    sys.stdout.write(json.dumps(report, indent=1) + "\n")
    return 1 if report["complaints"] else 0


if __name__ == "__main__":
    sys.exit(main())
