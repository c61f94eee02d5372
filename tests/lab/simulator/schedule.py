"""One seeded schedule (people, two bots that crash and start again, the auditor), and its runs."""

import asyncio
import gc
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

import structlog

from memory.store.client import RedisClient
from memory.store.keys import Keys, Scope
from memory.text.tokens import TokenCounter
from memory.work.item import BEGUN
from tests.lab.simulator.audit import Auditor
from tests.lab.simulator.audit_turns import Violated
from tests.lab.simulator.bot import BOT_ID, Connections, SimulatedBot
from tests.lab.simulator.chance import Chance
from tests.lab.simulator.client import SharedServer, SimulatedRedisClient, Texts, script_sources
from tests.lab.simulator.clock import Time, simulated
from tests.lab.simulator.loop import Died, Process, VirtualLoop
from tests.lab.simulator.people import People, Running, draw_actions, draw_kinds
from tests.lab.simulator.store.keyspace import Hash, Keyspace
from tests.lab.simulator.store.lua import Lua
from tests.lab.simulator.store.server import InMemoryRedis
from tests.lab.simulator.store.streams import Stream
from tests.lab.simulator.telegram import SimulatedTelegram, TelegramClient
from tests.lab.simulator.turn import MadeUpBug
from tests.lab.simulator.verdict import final_verdict

_SLOTS = ("A", "B")
_MAX_SETTLING_S = 400.0
_CHECK_EVERY_S = 0.5
_EXPECTED = (MadeUpBug, Died, Violated, asyncio.CancelledError)


@dataclass(frozen=True, slots=True)
class Protocol:
    """What is simulated: the product's own protocol, or one that was broken on purpose.

    `lua` replaces the texts of some scripts, by name; `breaks` is called with each new bot. `often`
    names faults that are made frequent. With `reminds` each message asks for a reminder. People
    edit, stop and ask again if `edits`, but never in schedules with reminders. They do only what
    `acts` names, if it names anything; if `alone`, all of them are one person.
    """

    lua: Mapping[str, str] = field(default_factory=dict)
    breaks: Callable[[SimulatedBot], None] = lambda _: None
    often: Collection[str] = ()
    reminds: bool = False
    edits: bool = True
    acts: Sequence[str] = ()
    alone: bool = False

    @property
    def has_edits(self) -> bool:
        """Whether people edit, stop and ask again."""
        return self.edits and not self.reminds


@dataclass(frozen=True, slots=True)
class SharedParts:
    """What all schedules share because it is slow to make; `texts` are the texts of the scripts."""

    protocol: Protocol
    tokens: TokenCounter
    lua: Lua
    texts: Texts


class Schedule:
    """Everything of one schedule; it runs once."""

    def __init__(
        self, shared: SharedParts, loop: VirtualLoop, seed: int, trace: list[str] | None
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._loop = loop
        self._trace = trace
        self._shared = shared
        self._chance = Chance(seed, shared.protocol.often)
        redis = InMemoryRedis(loop.unix_ms, shared.lua)
        self._space: Keyspace = redis.space
        self._keys = Keys(BOT_ID)
        note = self.note if trace is not None else None
        self.auditor = Auditor(redis.space, self._keys, note)
        self._server = SharedServer(redis, self.auditor, shared.texts)
        self._telegram = SimulatedTelegram(loop, self._chance, self.auditor)
        self._running: dict[str, Running] = {}
        self._dead: set[str] = set()
        self._slots: list[asyncio.Task[None]] = []
        self._people = People(
            loop, self._chance, self._telegram, lambda: list(self._running.values())
        )
        self.auditor.world = self._people

    def note(self, who: str, what: str) -> None:
        """Count it if it is a death or a stop, and add it to the trace."""
        if what in ("dies", "is asked to stop") or what.startswith("is stopped"):
            self.counts[what.partition(" for")[0]] += 1
        if self._trace is not None:
            self._trace.append(f"{self._loop.now:9.4f}  {who:<8} {what}")

    async def run(self) -> None:
        """Run the schedule, then check every promise; `auditor.violation` has the result."""
        self._slots = [self._loop.create_task(self._keep_running(name)) for name in _SLOTS]
        try:
            protocol = self._shared.protocol
            kinds = protocol.acts or draw_kinds(self._chance, edits=protocol.has_edits)
            await self._people.act(draw_actions(self._chance, kinds, alone=protocol.alone))
            await asyncio.sleep(self._chance.random.uniform(0, 10))
            self._chance.is_calm = True
            self.note("chance", "no more faults from here on")
            await self._settle()
        except Violated:
            return
        finally:
            await self._end()

    async def _settle(self) -> None:
        until = self._loop.now + _MAX_SETTLING_S
        while not self.auditor.violation and (not self._people.is_done or self._what_is_left()):
            if self._loop.now > until:
                self.auditor.violated("everything finishes", self._what_is_left())
            await asyncio.sleep(_CHECK_EVERY_S)
        if not self.auditor.violation:
            final_verdict(self.auditor, self._people.written, self._dead)

    def _what_is_left(self) -> str:
        """Name the work that is not done yet, "" if everything is done."""
        left = [] if self._people.is_done else ["updates"]
        left += ["turns"] if self.auditor.records.running else []
        names = [self._keys.due, self._keys.learning]
        for tag in self.auditor.records.conversations:
            conversation = Scope(tag)
            keys = self._keys.scope(conversation)
            names += [keys.mailbox, keys.lease, self._keys.learner(conversation)]
            work = (self._space.get(keys.work.encode(), Hash) or Hash()).values()
            # A task that has begun is kept for a day.
            left += ["work" for each in work if int(each.split(b"|")[3]) < BEGUN]
        left += [name for name in names if self._space.exists(name.encode())]
        for name in (self._keys.ready_queue, self._keys.jobs):
            stream = self._space.get(name.encode(), Stream)
            left += [name] if stream and stream.entries else []
        return ", ".join(left)

    async def _keep_running(self, slot: str) -> None:
        """Start a bot, and start the next one whenever a bot has ended."""
        starts = 0
        while True:
            starts += 1
            process = Process(f"{slot}{starts}", self._loop, self.note)
            stopping = asyncio.Event()
            bot = SimulatedBot(self._connect(process))
            self._shared.protocol.breaks(bot)
            self._running[slot] = (process, bot)
            running = process.start(bot.run(stopping))
            lifetime = self._chance.random.choice((1.0, 8.0, 1e9, 1e9, 1e9, 1e9))
            await asyncio.wait({running}, timeout=None if self._chance.is_calm else lifetime)
            del self._running[slot]
            if not running.done():
                self.note(process.name, "is asked to stop")
                stopping.set()
                await asyncio.wait({running})
            if process.is_dead:
                self._dead.add(process.name)
            process.end()
            await asyncio.sleep(self._chance.random.uniform(0.1, 2))

    def _connect(self, process: Process) -> Connections:
        client: RedisClient = SimulatedRedisClient(self._server, process, self._chance, self._loop)
        return Connections(
            process,
            client,
            TelegramClient(self._telegram, process),
            self._chance,
            self.auditor,
            self._loop,
            self._shared.tokens,
            self._shared.protocol.reminds,
            self._shared.protocol.has_edits,
        )

    async def _end(self) -> None:
        """End all processes and tasks of this schedule."""
        for process, _ in self._running.values():
            process.end()
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in others:
                task.cancel()
            await asyncio.wait(others)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a schedule ended; `violation` is empty if every promise was kept."""

    seed: int
    violation: str
    counts: Counter[str]
    trace: tuple[str, ...] = ()


class Simulator:
    """Simulates one protocol, the product's own or a broken one."""

    def __init__(self, time: Time, tokens: TokenCounter, protocol: Protocol) -> None:
        self._time = time
        texts = {
            source: (name, protocol.lua.get(name, source).encode())
            for name, source in script_sources().items()
        }
        self._shared = SharedParts(protocol, tokens, Lua(), texts)

    def run(self, seed: int, *, traced: bool = False) -> Outcome:
        """Run one schedule; with `traced`, keep a line for each thing that happens."""
        trace: list[str] | None = [] if traced else None
        loop = VirtualLoop()
        loop.set_exception_handler(lambda *_: None)  # the auditor reports what matters
        self._time.follow(loop, seed)
        schedule = Schedule(self._shared, loop, seed, trace)
        auditor = schedule.auditor

        def unexpected(error: BaseException | None, event: str) -> None:
            if not isinstance(error, _EXPECTED) and not auditor.violation:
                auditor.violation = f"every error is expected: {event}: {error!r}"

        with _report_logged_errors(unexpected):
            loop.run_until_complete(schedule.run())
        loop.close()
        counts = schedule.counts + auditor.records.counts
        counts["steps"] = auditor.step
        return Outcome(seed, auditor.violation, counts, tuple(trace or ()))


@contextmanager
def simulator(
    protocol: Protocol | None = None, tokens: TokenCounter | None = None
) -> Iterator[Simulator]:
    """Yield a simulator; inside the block the product's time is simulated."""
    tokens = tokens or asyncio.run(TokenCounter.load())
    gc.freeze()  # the collector need not visit what all schedules share
    try:
        with simulated() as time:
            yield Simulator(time, tokens, protocol or Protocol())
    finally:
        gc.unfreeze()


@contextmanager
def _report_logged_errors(report: Callable[[BaseException | None, str], None]) -> Iterator[None]:
    """Drop all log lines, but report those with a traceback."""

    def drop(_: Any, __: str, event: MutableMapping[str, Any]) -> NoReturn:
        # The logger calls its method `error` for both `error` and `exception`.
        traced = event.get("exc_info")
        if traced:
            error = traced if isinstance(traced, BaseException) else sys.exc_info()[1]
            report(error, str(event["event"]))
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(processors=[drop], wrapper_class=structlog.make_filtering_bound_logger(40))
    try:
        yield
    finally:
        structlog.configure(**before)
