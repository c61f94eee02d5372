"""Clients that are interrupted: by what another process does, or by the death of their own."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import cached_property

from memory.store.client import RedisClient
from memory.store.commands import Arg, Command, Reply, ScriptCall
from memory.store.errors import StoreUnavailable

_MAX_STEPS = 40


@asynccontextmanager
async def full_redis(client: RedisClient, max_bytes: int = 1) -> AsyncIterator[None]:
    await client.call("CONFIG SET", "maxmemory", max_bytes)
    try:
        yield
    finally:
        await client.call("CONFIG SET", "maxmemory", 0)


class InterruptedClient(RedisClient):
    """Awaits, once, what `behind` has for a command's name or a script's digest, after it ran."""

    @cached_property
    def behind(self) -> dict[str, Callable[[], Awaitable[object]]]:
        return {}

    async def call(self, *command: Arg) -> Reply:
        reply = await super().call(*command)
        await self._interrupt(str(command[0]))
        return reply

    async def pipeline(self, commands: Sequence[Command | ScriptCall]) -> list[Reply]:
        names = [e.digest if isinstance(e, ScriptCall) else str(e[0]) for e in commands]
        if self.behind.keys().isdisjoint(names):
            return await super().pipeline(commands)
        replies: list[Reply] = []
        for command, name in zip(commands, names, strict=True):
            replies += await super().pipeline([command])
            await self._interrupt(name)
        return replies

    async def _interrupt(self, name: str) -> None:
        if meanwhile := self.behind.pop(name, None):
            await meanwhile()


class DyingClient(RedisClient):
    """Sends so many commands or pipelines; then the process is dead, or `then` is awaited once."""

    calls_left = 1
    then: Callable[[], Awaitable[object]] | None = None

    def deaths(self) -> Iterator[int]:
        """Die before the first command, then before the second, and so on, until it lives on."""
        for self.calls_left in range(_MAX_STEPS):
            yield self.calls_left
            if self.calls_left > 0:
                return
        raise AssertionError("it never came to the end")

    async def call(self, *command: Arg) -> Reply:
        await self._live()
        return await super().call(*command)

    async def pipeline(self, commands: Sequence[Command | ScriptCall]) -> list[Reply]:
        await self._live()
        return await super().pipeline(commands)

    async def _live(self) -> None:
        self.calls_left -= 1
        if self.calls_left < 0 and not self.then:
            raise StoreUnavailable("dead")
        if self.calls_left == -1 and self.then:
            await self.then()
