"""A `RedisClient` whose calls reach the in-memory server, or do not, as chance has it.

Its answers take the form that the SDK gives them, by the SDK's own functions.
"""

import asyncio
from collections.abc import Mapping, Sequence

from redis.asyncio import ConnectionPool, Redis

from memory.store.client import RedisClient
from memory.store.commands import Arg, Command, Reply, Script, ScriptCall
from memory.store.errors import StoreRefused, StoreUnavailable
from tests.lab.simulator.chance import Chance
from tests.lab.simulator.loop import VirtualLoop
from tests.lab.simulator.process import Died, Process
from tests.lab.simulator.store.keyspace import Args, NotSimulatedError, RedisError
from tests.lab.simulator.store.server import InMemoryRedis

_CALLBACKS = Redis.from_pool(ConnectionPool(protocol=2)).response_callbacks

Texts = Mapping[str, tuple[str, bytes]]


class Observer:
    """Sees each atomic step of the server; by itself it looks away."""

    def not_simulated(self, what: str) -> None:
        """Hear of what the server does not know."""

    def before(self, script: str, keys: Args, args: Args) -> None:
        """Look at the store before a script runs."""

    def after(self, process: Process, script: str, keys: Args, args: Args, reply: Reply) -> None:
        """Look at the store after a command (`script` is its name in capitals) or a script."""


class SharedServer:
    """The one server of a schedule, with those who wait for its streams.

    `texts` has, by the text of a script, its name and the text to run.
    """

    def __init__(self, redis: InMemoryRedis, observer: Observer, texts: Texts) -> None:
        self._redis = redis
        self._observer = observer
        self._texts = texts
        self._keys: dict[tuple[str, ...], Args] = {}
        self._waiting: dict[bytes, list[asyncio.Future[None]]] = {}
        redis.space.on_added = self._wake

    def carry_out(self, process: Process, command: Command | ScriptCall) -> Reply:
        """Carry out one atomic step; raise `StoreRefused` when the server objects."""
        try:
            if isinstance(command, ScriptCall):
                return self._run(process, command)
            return self._execute(process, command)
        except RedisError as error:
            raise StoreRefused(str(error)) from error
        except NotSimulatedError as error:
            self._observer.not_simulated(str(error))
            raise

    async def is_news(self, stream: Arg, until: float, loop: VirtualLoop) -> bool:
        """Wait until a stream has grown; false when it has not until that time."""
        grown = loop.after(until - loop.now)
        self._waiting.setdefault(_encoded(stream), []).append(grown)
        await grown
        return loop.now < until

    def _run(self, process: Process, call: ScriptCall) -> Reply:
        name, source = self._texts[call.source]
        named = tuple(call.keys)
        keys = self._keys.get(named)
        if keys is None:
            keys = self._keys[named] = [key.encode() for key in named]
        args = [_encoded(arg) for arg in call.args]
        self._observer.before(name, keys, args)
        reply = self._redis.run(source, keys, args)
        self._observer.after(process, name, keys, args, reply)
        return reply

    def _execute(self, process: Process, command: Command) -> Reply:
        words, rest = str(command[0]), command[1:]
        name, *more = words.encode().split()
        args = [_encoded(arg) for arg in rest]
        if more:
            args = [*more, *args]
        reply: Reply = self._redis.execute(name, args)
        self._observer.after(process, words, args[:1], args, reply)
        callback = _CALLBACKS.get(words)
        if callback is None:
            return reply
        return callback(reply, withscores=True) if b"WITHSCORES" in args else callback(reply)

    def _wake(self, stream: bytes) -> None:
        for grown in self._waiting.pop(stream, ()):
            if not grown.done():
                grown.set_result(None)


class NamelessScript(Script):
    """A script that is not known by a digest."""

    def __init__(self, client: RedisClient, source: str) -> None:
        self._client = client
        self._source = source
        self._digest = ""


class SimulatedRedisClient(RedisClient):
    """One process's client; every step of a pipeline is a place where others may come between."""

    def __init__(
        self, server: SharedServer, process: Process, chance: Chance, loop: VirtualLoop
    ) -> None:
        self.round_trips = 0
        self._server = server
        self._process = process
        self._chance = chance
        self._loop = loop

    async def call(self, *command: Arg) -> Reply:
        """Send one command; one that may block waits for news of a stream."""
        [reply] = await self.pipeline([command])
        if command[0] == "XREADGROUP":
            until = self._loop.now + int(command[command.index("BLOCK") + 1]) / 1000
            while not reply and await self._server.is_news(command[-2], until, self._loop):
                [reply] = await self.pipeline([command])
        return reply

    @property
    def is_cluster(self) -> bool:
        """Return false: a pipeline is one round trip here."""
        return False

    def script(self, source: str) -> Script:
        """Make a Lua text callable, without a name that only a real server asks for."""
        return NamelessScript(self, source)

    async def pipeline(self, commands: Sequence[Command | ScriptCall]) -> list[Reply]:
        """Send commands; what is lost, repeated or late is decided for all of them at once."""
        self.round_trips += 1
        process, chance = self._process, self._chance
        fate = chance.fate("store")
        await process.travel(chance.latency())
        if fate == "crash":
            process.crash()
            raise Died
        if fate == "pause":
            process.pause(chance.pause())
            await process.travel(0)
        if fate == "late":
            self._loop.call_later(chance.random.uniform(0, 8), self._arrive_late, commands)
        if fate in ("unavailable", "late"):
            await process.travel(chance.random.uniform(0, 2))
            raise StoreUnavailable("simulated: no answer")
        replies = await self._carried_out(commands)
        if fate == "repeated":
            await process.travel(chance.patience())
            replies = await self._carried_out(commands)
        if fate == "crash after":
            process.crash()
            raise Died
        if fate or chance.random.random() < 0.4:  # else the way of the next call stands for it
            await process.travel(chance.latency())
        if fate == "lost":
            raise StoreUnavailable("simulated: the answer was lost")
        return replies

    async def close(self) -> None:
        """There is nothing to give up."""

    async def _carried_out(self, commands: Sequence[Command | ScriptCall]) -> list[Reply]:
        """Carry out all; the first objection is raised after the last command."""
        replies: list[Reply] = []
        objection: StoreRefused | None = None
        for number, command in enumerate(commands):
            if number and self._chance.random.random() < 0.1:
                await self._process.travel(self._chance.latency())
            try:
                replies.append(self._server.carry_out(self._process, command))
            except StoreRefused as error:
                objection = objection or error
        if objection is not None:
            raise objection
        return replies

    def _arrive_late(self, commands: Sequence[Command | ScriptCall]) -> None:
        """Carry out what its sender, dead or alive, has given up long since."""
        for command in commands:
            try:
                self._server.carry_out(self._process, command)
            except StoreRefused:
                continue


def _encoded(arg: Arg) -> bytes:
    if isinstance(arg, str):
        return arg.encode()
    if isinstance(arg, bytes):
        return arg
    return b"%d" % arg if isinstance(arg, int) else repr(arg).encode()
