"""Runs a month of many chats in an hour: what is lost, what grows, what is left at the end.

    python -m tests.lab.month [--chats 10000] [--turns 200000] [--days 30] [--seconds 3600]

A web process, four workers and one Redis of 1 GB with an append-only file. Each "day" is a part of
the turns, at the machine's full speed: a quiet night, a morning, a quiet noon and an evening with
more people than slots. It begins with a deploy while people talk: all processes but the last worker
are replaced, one after the other; that one shows what grows. On the way processes are killed, Redis
is full, Redis fails over to a replica, and a backup is saved, which is restored into another Redis
at the end. `--seconds` ends the month early; the report says how much was played. Times are real: a
day is as long as its turns take, so what takes hours, such as `MEMORY_TTL_DAYS`, does not happen.

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
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import accumulate, islice
from pathlib import Path
from random import Random
from typing import NamedTuple

import httpx2

from bot.telegram.telegram import WEBHOOK_PATH
from tests.acceptance.bot_process import BotProcess, run_command
from tests.lab.figures import resident_mb
from tests.lab.fleet import served
from tests.lab.lean_http import HOST
from tests.lab.lean_telegram import TOKEN, Update
from tests.lab.month.audit import Audit, audit
from tests.lab.month.people import ACTS, CHANCES, PRIVATE, MonthTelegram, Place
from tests.valkey import ValkeyServer, free_port, opened

WORKERS = 4
STRIKES = ("kill a worker", "", "full", "kill web", "", "backup", "failover", "", "kill Redis")
"""What happens on each of nine days in turn."""

PATIENCE_S = 120
TTL_DAYS = 90
TTL_S = TTL_DAYS * 86_400
RHYTHM = ((0.05, 2), (0.4, 48), (0.5, 8), (1.0, 144))
"""How many people talk at once, each time until this part of the day's turns."""

_STRANGERS, _BURST = 500, 3
_SECRET = "a-secret-of-the-month"
_REDIS_MB = 1_000
_BOT_ID = int(TOKEN.partition(":")[0])
_AGAIN_S, _QUIET_S = 0.3, 8  # before a refused update comes again; for what comes late
PRICE_IN, PRICE_OUT = 0.25, 2.0
"""Dollars for a million tokens of a small model, as the list prices of 2026 say."""

Figures = dict[str, object]


class Size(NamedTuple):
    """How much is played."""

    chats: int = 10_000
    turns: int = 200_000
    days: int = 30
    seconds: float = 3_600.0


@dataclass
class Month:
    """All that runs, and what happened."""

    size: Size
    folder: Path
    telegram: MonthTelegram
    valkey: ValkeyServer
    random: Random = field(default_factory=lambda: Random(1))
    places: list[Place] = field(default_factory=list)
    bots: dict[str, BotProcess] = field(default_factory=dict)
    http: httpx2.AsyncClient = field(default_factory=lambda: httpx2.AsyncClient(timeout=60))
    settings: Mapping[str, str] = field(default_factory=dict)
    days: list[Figures] = field(default_factory=list)
    webhook: str = field(default_factory=lambda: f"http://{HOST}:{free_port()}")
    turns: int = 0
    refused: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    struck: list[str] = field(default_factory=list)
    logged: Counter[str] = field(default_factory=Counter)

    async def play(self) -> None:
        """Play all days, or as many as there is time for."""
        ends = time.monotonic() + self.size.seconds
        self.places = [Place(number) for number in range(self.size.chats)]
        address = f"{self.valkey.url}?memory_mb={_REDIS_MB}"
        environment, model = served(self.folder, self.telegram, "tests.lab.month.model", address)
        self.settings = environment | {
            "ALLOWED_USER_IDS": ",".join(str(each.person) for each in self.places),
            "MEMORY_TTL_DAYS": str(TTL_DAYS),
            "WEBHOOK_SECRET": _SECRET,
            "COALESCE_S": "0",
        }
        own = {"WEBHOOK_URL": self.webhook, "PORT": self.webhook.rpartition(":")[2]}
        web = BotProcess({**self.settings, **own}, command="web")
        names = (f"worker {number}" for number in range(1, WORKERS + 1))
        workers = {name: BotProcess(self.settings, command="worker") for name in names}
        self.bots = {"model": model, "web": web, **workers}
        await model.start()
        await self.deploy(0)
        for day in range(self.size.days):
            if time.monotonic() > ends:
                break
            strike = asyncio.create_task(self.strike(day))
            for until, talking in RHYTHM:
                until_turn = int((day + until) * self.size.turns / self.size.days)
                await self.talk(until_turn, talking, ends)
            await strike
            await self._note(day)
        await self._until(lambda: not self.reminders_missing())
        await asyncio.sleep(_QUIET_S)

    def reminders_missing(self) -> Counter[str]:
        """Return how many reminders and tasks that are due did not come."""
        now = time.time()
        return Counter(kind for each in self.places for kind in each.reminders_missing(now))

    async def deploy(self, day: int) -> None:
        """Replace every process, one after the other; the last worker only every nine days."""
        for name, bot in self.bots.items():
            if name == "model" or (name == f"worker {WORKERS}" and day % len(STRIKES)):
                continue
            assert await bot.stop() == 0, name
            await bot.start()

    async def kill(self, name: str) -> None:
        """Kill a process, and start it again."""
        await self.bots[name].kill()
        await self.bots[name].start()

    async def deliver(self, update: Update) -> None:
        """Post an update until it is taken in, as Telegram does."""
        headers = {"X-Telegram-Bot-Api-Secret-Token": _SECRET}
        while True:
            try:
                url = f"{self.webhook}{WEBHOOK_PATH}"
                answer = await self.http.post(url, json=update, headers=headers)
                if answer.is_success:
                    return
            except httpx2.HTTPError:
                pass  # it is replaced now
            self.refused += 1
            await asyncio.sleep(_AGAIN_S)

    async def talk(self, until_turn: int, talking: int, ends: float) -> None:
        """Let people talk until this many turns have begun; some chats are busier than others."""
        weights = list(accumulate(1 + 1_000 / (1 + each.number) for each in self.places))
        busy: set[int] = set()

        async def one() -> None:
            while self.turns < until_turn and time.monotonic() < ends:
                [place] = self.random.choices(self.places, cum_weights=weights)
                if place.number in busy:
                    place = self.random.choice(self.places)
                if place.number in busy:
                    await asyncio.sleep(0.01)
                    continue
                kind = self._kind(place)
                self.turns += 1
                busy.add(place.number)
                await self.visit(place, kind)
                busy.discard(place.number)

        await asyncio.gather(*(one() for _ in range(min(talking, self.size.chats))))

    def _kind(self, place: Place) -> str:
        """Return what a person does next: first what nobody has done yet, then by chance."""
        may = [each for each in CHANCES if each not in PRIVATE or place.kind == "private"]
        new = [each for each in may if not self.asked[each]]
        [kind] = new[:1] or self.random.choices(may, [CHANCES[each] for each in may])
        self.asked[kind] += 1
        return kind

    async def visit(self, place: Place, kind: str) -> None:
        """Let one person do something, and wait until the bot has done its part."""
        if kind == "stranger":
            place = Place(20 * (self.size.chats + self.random.randrange(_STRANGERS)))
            place = self.telegram.places.get(place.id, place)
            await self.deliver(self.telegram.message(place, "text", self.random)[0])
        elif kind in ACTS:
            await self.act(place, kind)
        else:
            await self.say(place, kind)

    async def say(self, place: Place, kind: str) -> None:
        """Let a person write until the bot has answered all."""
        apologies, tasks, before = place.seen["apology"], place.seen["task"], len(place.said)
        place.buttons.clear()

        def answered() -> bool:
            asked = islice(place.said, before, None)
            return all(map(place.answered.get, asked)) or place.seen["apology"] > apologies

        for _ in range(_BURST if kind == "burst" else 1):
            update, marker = self.telegram.message(place, kind, self.random)
            place.said[marker] = kind
            await self.deliver(update)
        # If a task is answered between, the message is not the last one, which is answered again.
        if kind == "edit" and not place.reminders_missing(until=time.time() + PATIENCE_S):
            await self._until(answered)
            edited, marker = self.telegram.edited(update, marker)
            place.said[marker] = kind
            await self.deliver(edited)
        await self._until(answered)
        if kind == "task":  # it is set, or asked about if words of others are in play
            await self._agree(place, lambda: place.seen[kind] > tasks)

    async def act(self, place: Place, kind: str) -> None:
        """Let a person send a file or a command, and press the button that agrees, if any."""
        done = place.seen[kind]
        place.buttons.clear()
        await self.deliver(self.telegram.message(place, kind, self.random)[0])
        await self._agree(place, lambda: place.seen[kind] > done)
        if kind in ("clear", "forget") and place.seen[kind] > done:
            place.erased()

    async def _agree(self, place: Place, is_done: Callable[[], bool]) -> None:
        """Press the button that agrees, if any, until it is done: a busy bot asks for that."""
        await self._until(lambda: bool(place.buttons) or is_done())
        for _ in range(10 if place.buttons else 0):
            await self.deliver(self.telegram.press(place))
            await self._until(is_done, PATIENCE_S / 10)
            if is_done():
                return

    async def _until(self, is_so: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
        """Wait until the bot has done something, which only its requests show."""
        ends = time.monotonic() + patience_s
        while not is_so() and time.monotonic() < ends:  # noqa: ASYNC110
            await asyncio.sleep(0.02)

    async def strike(self, day: int) -> None:
        """Deploy, and do what `STRIKES` says for this day, while people talk."""
        if day:
            await self.deploy(day)
        chosen = STRIKES[day % len(STRIKES)]
        self.struck += [chosen] if chosen else []
        match chosen:
            case "kill a worker":
                await self.kill("worker 1")
            case "kill web":
                await self.kill("web")
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
        status, said = await run_command(settings, *arguments)
        if status:
            raise RuntimeError(said[-2_000:])

    async def _note(self, day: int) -> None:
        files = sum(each.stat().st_size for each in self.valkey.folder.rglob("*") if each.is_file())
        self.days.append(
            {
                "day": day + 1,
                "at": time.time(),
                "turns": self.turns,
                "resident_mb": {name: resident_mb(bot.pid) for name, bot in self.bots.items()},
                "redis_mb": round(self._info("memory", "used_memory") / 2**20, 1),
                "disk_mb": round(files / 2**20, 1),
                "struck": self.struck[-1:] or [""],
            }
        )
        sys.stderr.write(json.dumps(self.days[-1]) + "\n")
        self._note_logs()

    def _note_logs(self) -> None:
        """Count each warning and error, except that a busy machine held the loop; keep no lines."""
        for bot in self.bots.values():
            self.logged.update(
                f"{line['event']} {line.get('reason') or line.get('error') or ''}".strip()
                for line in bot.log
                if line.get("level") in ("error", "critical", "warning")
                and "loop" not in line["event"]
            )
            bot.log.clear()
            bot.raw.clear()

    async def close(self) -> None:
        """End all processes, the model last: bots that end finish their turns."""
        async with AsyncExitStack() as ending:
            for bot in self.bots.values():
                ending.push_async_exit(bot)

    async def report(self) -> Figures:
        """Return all figures; `complaints` is empty if no promise was broken."""
        everybody = self.telegram.places.values()
        played = [each for each in self.places if each.said]
        strangers = [each for each in everybody if each.number >= self.size.chats]
        asked = (await self.http.get(f"{self.settings['OPENAI_BASE_URL']}/stats")).json()
        seen = sum((each.seen for each in everybody), Counter())
        lost = Counter(kind for each in played for kind in each.missing()[each.seen["apology"] :])
        doubled = sum(n - 1 for each in played for n in each.answered.values() if n > 1)
        again = sum(n - 1 for each in played for n in each.came.values())
        late = sorted(s for each in played for s in each.late_s) or [0.0]
        to_come = sum(not each.came[name] for each in played for name in each.due)
        messages = sum(len(each.said) for each in played)
        gone = [word for each in played for word in each.words[:-1]]
        gone += [each.words[0] for each in strangers]
        found = await self._audited(self.valkey, gone)
        restored = await self._restored(gone)
        cost = (asked["tokens_in"] * PRICE_IN + asked["tokens_out"] * PRICE_OUT) / 1e6
        complaints = dict(found.complaints) | {f"restored: {k}": v for k, v in restored.items()}
        complaints |= {f"lost: {kind}": count for kind, count in lost.items()}
        complaints |= {f"not come: {kind}": n for kind, n in self.reminders_missing().items()}
        complaints |= {f"never: {kind}": 1 for kind in CHANCES if not self.asked[kind]}
        complaints |= {f"not done: {kind}": self.asked[kind] - seen[kind] for kind in ACTS}
        complaints |= {
            "out of order": sum(each.disorder() for each in played),
            "spoken of after it was erased": seen["spoken of after it was erased"],
            "strangers answered": sum(each.answered.total() for each in strangers),
            "strangers not told": not seen["stranger"],
            "pictures not shown": self.asked["photo"] > asked["pictures"],
            "sounds not heard": self.asked["voice"] > asked["sounds"],
        }
        return {
            "chats": len(played),
            "turns": self.turns,
            "messages": messages,
            "asked": dict(self.asked),
            "done": dict(seen),
            "posted again": self.refused,
            "struck": self.struck,
            "lost": lost.total(),
            "doubled": {"answers": doubled, "reminders": again},
            "reminders": {"came": len(late), "to come": to_come - self.reminders_missing().total()},
            "late_s": {"median": late[len(late) // 2], "last": late[-1]},
            "days": self.days,
            "bytes_a_message": round(sum(found.nbytes.values()) / (2 * messages)),
            "model": asked,
            "dollars_a_person": round(cost / max(1, len(played)), 5),
            "keys": dict(found.keys.most_common()),
            "logged": dict(self.logged.most_common(30)),
            "complaints": {name: int(count) for name, count in complaints.items() if count > 0},
        }

    async def _audited(self, valkey: ValkeyServer, gone: list[str]) -> Audit:
        known = frozenset().union(*(each.scopes for each in self.places))
        async with opened(valkey.url) as redis:
            return await audit(redis, _BOT_ID, known, gone, TTL_S)

    async def _restored(self, gone: list[str]) -> dict[str, int]:
        """Restore the backup and the journal of later erasures into an empty Redis; audit it."""
        if not (self.folder / "month.backup").exists():
            return {}
        journal = str(self.folder / "month.journal")
        await self.command("backup", journal, "--journal", **self.settings)
        with _redis(self.folder, "restored") as other:
            settings = {**self.settings, "REDIS_URL": other.url}
            await self.command("restore", str(self.folder / "month.backup"), journal, **settings)
            found = await self._audited(other, gone)
        return dict(found.complaints) | ({} if found.keys["log"] else {"nothing": 1})


def _redis(folder: Path, name: str) -> ValkeyServer:
    options = ("--appendonly", "yes", "--appendfsync", "everysec")
    return ValkeyServer(folder / name, *options, "--maxmemory", f"{_REDIS_MB}mb")


async def run(size: Size) -> Figures:
    """Play a month and return its report."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        valkey = _redis(folder, "redis")
        valkey.start()
        telegram = await stack.enter_async_context(MonthTelegram())
        month = Month(size, folder, telegram, valkey)
        stack.push_async_callback(month.http.aclose)
        stack.callback(lambda: month.valkey.stop())  # noqa: PLW0108 - a replica may run instead
        stack.push_async_callback(month.close)
        await month.play()
        return await month.report()


def main() -> int:
    """Play, print the report, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.month", description=__doc__)
    for name, value in Size()._asdict().items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    report = asyncio.run(run(Size(**vars(parser.parse_args()))))
    sys.stdout.write(json.dumps(report, indent=1) + "\n")
    return 1 if report["complaints"] else 0


if __name__ == "__main__":
    sys.exit(main())
