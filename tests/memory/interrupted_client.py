"""A client between whose commands something else happens, as it may with several processes."""

from collections.abc import Awaitable, Callable, Sequence

from memory.redis_client import Command, RedisClient, Reply, ScriptCall


class InterruptedClient(RedisClient):
    """Awaits `meanwhile` once, after the first command of the next pipeline."""

    meanwhile: Callable[[], Awaitable[object]] | None = None

    async def pipeline(self, commands: Sequence[Command | ScriptCall]) -> list[Reply]:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is None:
            return await super().pipeline(commands)
        first = await super().pipeline(commands[:1])
        await meanwhile()
        return first + await super().pipeline(commands[1:])
