"""The in-memory server with a clock that the test chooses, and without any faults."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from memory.store.client import RedisClient
from memory.store.commands import Arg, Command, Reply, Script, ScriptCall
from tests.lab.simulator.client import NamelessScript, Observer, SharedServer
from tests.lab.simulator.loop import Process, VirtualLoop
from tests.lab.simulator.schedule import script_sources
from tests.lab.simulator.store.lua import Lua
from tests.lab.simulator.store.server import InMemoryRedis


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
        loop = VirtualLoop(lambda *_: None)
        loop.close()  # nothing is awaited here
        self._process = Process("test", loop, lambda *_: None)

    def carry_out(self, command: Command | ScriptCall) -> Reply:
        """Execute one command; raise a `StoreError` if the server answers with an error."""
        return self._server.carry_out(self._process, command)

    async def call(self, *command: Arg) -> Reply:
        """Execute one command, as `RedisClient.call` does."""
        return self.carry_out(command)

    async def pipeline(self, commands: Sequence[Command | ScriptCall]) -> list[Reply]:
        self.round_trips += 1
        return [self.carry_out(command) for command in commands]

    def script(self, source: str) -> Script:
        """Make a Lua text callable."""
        return NamelessScript(self, source)

    async def close(self) -> None:
        """Do nothing: there is no connection."""


_lua, _sources = cache(Lua), cache(script_sources)
