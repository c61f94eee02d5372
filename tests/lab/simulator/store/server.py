"""The server: finds a command, runs a script, answers as Redis does over RESP 2."""

from collections.abc import Callable

from tests.lab.simulator.store import streams, values
from tests.lab.simulator.store.keyspace import Args, Keyspace, NotSimulatedError, Reply
from tests.lab.simulator.store.lua import Lua

_COMMANDS = values.COMMANDS | streams.COMMANDS


class InMemoryRedis:
    """One server with one database; commands are atomic because nothing else runs meanwhile."""

    def __init__(self, now_ms: Callable[[], int], lua: Lua) -> None:
        self.space = Keyspace(now_ms)
        self._lua = lua

    def execute(self, name: bytes, args: Args) -> Reply:
        """Run one command and return its raw reply; raise `RedisError` for an error answer."""
        command = _COMMANDS.get(name)
        if command is None:
            raise NotSimulatedError(name.decode())
        return command(self.space, args)

    def run(self, source: bytes, keys: Args, args: Args) -> Reply:
        """Run a script and return its raw reply; raise `RedisError`."""
        return self._lua.run(source, keys, args, self.execute)
