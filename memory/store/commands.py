"""What is sent to the store: commands, calls of scripts, and round trips of several callers."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha1
from typing import TYPE_CHECKING, Any, TypeAlias

import orjson

from memory.store.errors import StoreError

if TYPE_CHECKING:
    from memory.store.client import RedisClient

Arg: TypeAlias = bytes | str | int | float
# The name is one string, even if Redis needs two words: ("XGROUP CREATE", "stream", …).
Command: TypeAlias = Sequence[Arg]
# The fields of the JSON object that a script takes.
Request: TypeAlias = Mapping[str, object]
# Bytes, int, float, bool, None, or lists, tuples and dicts of these. The sender of a command knows
# the shape of its reply and names it.
Reply: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class ScriptCall:
    """A script with its keys and arguments, ready to run alone or in a pipeline."""

    source: str
    digest: str
    keys: Sequence[str]
    args: Sequence[Arg]


class Script:
    """A Lua script; calling it runs it."""

    def __init__(self, client: "RedisClient", source: str) -> None:
        self._client = client
        self._source = source
        self._digest = sha1(source.encode()).hexdigest()  # noqa: S324 - Redis's own name

    def command(
        self, keys: Sequence[str], request: Request | Sequence[Arg] = (), *opaque: Arg
    ) -> ScriptCall:
        """Return a call for a pipeline.

        The script gets `request` as one JSON object; `opaque` arguments follow it as they are.
        """
        args = (orjson.dumps(request),) if isinstance(request, Mapping) else request
        return ScriptCall(self._source, self._digest, keys, (*args, *opaque))

    async def __call__(
        self, keys: Sequence[str], request: Request | Sequence[Arg] = (), *opaque: Arg
    ) -> Reply:
        """Run the script alone; raise a `StoreError` if it was not done."""
        [reply] = await self._client.pipeline([self.command(keys, request, *opaque)])
        return reply


@dataclass(slots=True)
class SharedTrip:
    """Commands of several callers that wait for the same connection, and what became of them."""

    commands: list[Command]
    replies: list[Reply] = field(default_factory=list)
    error: StoreError | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def join(self, commands: Sequence[Command]) -> list[Reply] | None:
        """Add commands and return their replies; None if the caller that sends gave up."""
        first = len(self.commands)
        self.commands.extend(encoded(commands))
        await self.over.wait()
        if self.error is not None:
            raise type(self.error)(*self.error.args) from self.error
        return self.replies[first : first + len(commands)] or None


def encoded(commands: Sequence[Command]) -> list[Command]:
    """Return commands with their texts as bytes.

    Encoding may fail, and then must fail before the command is among those of other callers.
    """
    return [
        (name, *(arg.encode() if isinstance(arg, str) else arg for arg in args))
        for name, *args in commands
    ]
