"""Clients whose calls reach the in-memory server, or fail at random.

The SDK's own functions bring its answers into the SDK's form.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache

from redis.asyncio import ConnectionPool, Redis

from memory.store.client import RedisClient
from memory.store.commands import Arg, Command, Reply, ScriptCall
from memory.store.errors import StoreRefused, StoreUnavailable
from memory.store.store import script_names, source
from tests.lab.simulator.chance import Chance
from tests.lab.simulator.loop import Died, Process, VirtualLoop
from tests.lab.simulator.store.keyspace import Args, NotSimulatedError, RedisError
from tests.lab.simulator.store.lua import Lua
from tests.lab.simulator.store.server import InMemoryRedis

_CALLBACKS = Redis.from_pool(ConnectionPool(protocol=2)).response_callbacks


def script_sources() -> dict[str, str]:
    """Return the texts of all scripts by their names."""
    return {name: source(name) for name in script_names()}


Texts = Mapping[str, tuple[str, bytes]]
"""For the text of each product script: the script's name, and the text to run instead."""


class Observer:
    """Observes each atomic step of the server; this base class does nothing."""

    def not_simulated(self, what: str) -> None:
        """Note a command that the server does not know."""

    def before(self, script: str, keys: Args, args: Args) -> None:
        """Observe the store before a script runs."""

    def after(self, caller: str, script: str, keys: Args, args: Args, reply: Reply) -> None:
        """Observe the store after a script or a command (then `script` is its name in capitals)."""


class SharedServer:
    """The one server of a schedule, and the readers that wait for its streams."""

    def __init__(self, redis: InMemoryRedis, observer: Observer, texts: Texts) -> None:
        self._redis = redis
        self._observer = observer
        self._texts = texts
        self._keys: dict[tuple[str, ...], Args] = {}
        self._waiting: dict[bytes, list[asyncio.Future[None]]] = {}
        redis.space.on_added = self._wake
        self._subscribers: list[asyncio.Queue[bytes]] = []
        redis.space.on_published = self._publish

    def carry_out(self, caller: str, command: Command | ScriptCall) -> Reply:
        """Execute one atomic step; raise `StoreRefused` if the server answers with an error."""
        try:
            if isinstance(command, ScriptCall):
                return self._run(caller, command)
            return self._execute(caller, command)
        except RedisError as error:
            raise StoreRefused(str(error)) from error
        except NotSimulatedError as error:
            self._observer.not_simulated(str(error))
            raise

    def keys_like(self, pattern: str) -> list[bytes]:
        """Return the keys that match a glob pattern."""
        return self._redis.space.like(pattern)

    async def wait_for_entry(self, stream: Arg, until: float, loop: VirtualLoop) -> bool:
        """Wait until a stream has a new entry; return false if it has none at that time."""
        grown = loop.after(until - loop.now)
        self._waiting.setdefault(_encoded(stream), []).append(grown)
        await grown
        return loop.now < until

    @contextmanager
    def subscribed(self) -> Iterator["asyncio.Queue[bytes]"]:
        """Give what is published while the block lasts."""
        messages: asyncio.Queue[bytes] = asyncio.Queue()
        self._subscribers.append(messages)
        try:
            yield messages
        finally:
            self._subscribers.remove(messages)

    def _publish(self, message: bytes) -> None:
        for messages in self._subscribers:
            messages.put_nowait(message)

    def _run(self, caller: str, call: ScriptCall) -> Reply:
        name, source = self._texts[call.source]
        named = tuple(call.keys)
        keys = self._keys.get(named)
        if keys is None:
            keys = self._keys[named] = [key.encode() for key in named]
        args = [_encoded(arg) for arg in call.args]
        self._observer.before(name, keys, args)
        reply = self._redis.run(source, keys, args)
        self._observer.after(caller, name, keys, args, reply)
        return reply

    def _execute(self, caller: str, command: Command) -> Reply:
        full_name, rest = str(command[0]), command[1:]
        name, *more = full_name.encode().split()
        args = [_encoded(arg) for arg in rest]
        if more:
            args = [*more, *args]
        reply: Reply = self._redis.execute(name, args)
        self._observer.after(caller, full_name, args[:1], args, reply)
        callback = _CALLBACKS.get(full_name)
        if callback is None:
            return reply
        return callback(reply, withscores=True) if b"WITHSCORES" in args else callback(reply)

    def _wake(self, stream: bytes) -> None:
        for grown in self._waiting.pop(stream, ()):
            if not grown.done():
                grown.set_result(None)


class SimulatedRedisClient(RedisClient):
    """One process's client; other processes may run between the commands of its pipelines."""

    is_cluster = False  # a pipeline is one round trip here

    def __init__(
        self, server: SharedServer, process: Process, chance: Chance, loop: VirtualLoop
    ) -> None:
        self.round_trips = 0
        self.max_connections = 4
        self._server = server
        self._process = process
        self._chance = chance
        self._loop = loop

    async def call(self, *command: Arg) -> Reply:
        """Send one command; `XREADGROUP` waits for new entries as long as it blocks."""
        [reply] = await self.pipeline([command])
        if command[0] == "XREADGROUP":
            until = self._loop.now + int(command[command.index("BLOCK") + 1]) / 1000
            while not reply and await self._server.wait_for_entry(command[-2], until, self._loop):
                [reply] = await self.pipeline([command])
        return reply

    async def messages(self, channel: str) -> AsyncIterator[bytes]:
        """Yield what is published; each message may be late or lost."""
        del channel
        with self._server.subscribed() as messages:
            yield b""
            while True:
                message = await messages.get()
                await self._process.travel(self._chance.latency())
                if not self._chance.fate("store"):
                    yield message

    async def keys_like(self, pattern: str) -> AsyncIterator[str]:
        """Yield the keys that match; they are found at once."""
        await self._process.travel(self._chance.latency())
        for key in self._server.keys_like(pattern):
            yield key.decode()

    async def pipeline(self, commands: Sequence[Command | ScriptCall]) -> list[Reply]:
        """Send commands; they are lost, repeated or late together."""
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
        if fate or chance.random.random() < 0.4:  # otherwise the next call's way is delay enough
            await process.travel(chance.latency())
        if fate == "lost":
            raise StoreUnavailable("simulated: the answer was lost")
        return replies

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    async def _carried_out(self, commands: Sequence[Command | ScriptCall]) -> list[Reply]:
        """Execute all commands; raise the first error after the last command."""
        replies: list[Reply] = []
        first_error: StoreRefused | None = None
        for number, command in enumerate(commands):
            if number and self._chance.random.random() < 0.1:
                await self._process.travel(self._chance.latency())
            try:
                replies.append(self._server.carry_out(self._process.name, command))
            except StoreRefused as error:
                first_error = first_error or error
        if first_error is not None:
            raise first_error
        return replies

    def _arrive_late(self, commands: Sequence[Command | ScriptCall]) -> None:
        """Execute commands that their sender has already given up."""
        for command in commands:
            try:
                self._server.carry_out(self._process.name, command)
            except StoreRefused:
                continue


def _encoded(arg: Arg) -> bytes:
    if isinstance(arg, str):
        return arg.encode()
    if isinstance(arg, bytes):
        return arg
    return b"%d" % arg if isinstance(arg, int) else repr(arg).encode()


class DirectClient(RedisClient):
    """A client whose calls arrive at once; `now` returns the server's time in Unix seconds.

    `scripts` are further scripts by name, in addition to the product's own.
    """

    def __init__(self, now: Callable[[], float], scripts: Mapping[str, str] | None = None) -> None:
        self.round_trips = 0
        sources = {**_sources(), **(scripts or {})}
        texts = {text: (name, text.encode()) for name, text in sources.items()}
        redis = InMemoryRedis(lambda: round(now() * 1000), _lua())
        self._server = SharedServer(redis, Observer(), texts)

    def carry_out(self, command: Command | ScriptCall) -> Reply:
        """Execute one command; raise a `StoreError` if the server answers with an error."""
        return self._server.carry_out("test", command)

    async def call(self, *command: Arg) -> Reply:
        """Execute one command, as `RedisClient.call` does."""
        return self.carry_out(command)

    async def pipeline(self, commands: Sequence[Command | ScriptCall]) -> list[Reply]:
        self.round_trips += 1
        return [self.carry_out(command) for command in commands]

    async def close(self) -> None:
        """Do nothing: there is no connection."""


_lua, _sources = cache(Lua), cache(script_sources)
