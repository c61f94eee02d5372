"""A client whose process dies after so many calls."""

from collections.abc import Sequence

from memory.store.client import RedisClient
from memory.store.commands import Arg, Command, Reply, ScriptCall
from memory.store.errors import StoreUnavailable


class DyingClient(RedisClient):
    """Sends so many commands or pipelines; then the process is dead."""

    calls_left = 1

    async def call(self, *command: Arg) -> Reply:
        self._live()
        return await super().call(*command)

    async def pipeline(self, commands: Sequence[Command | ScriptCall]) -> list[Reply]:
        self._live()
        return await super().pipeline(commands)

    def _live(self) -> None:
        self.calls_left -= 1
        if self.calls_left < 0:
            raise StoreUnavailable("dead")
