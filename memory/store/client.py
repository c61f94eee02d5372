"""The door to Redis or Valkey: no other room of the product knows its SDK.

A client sends commands, pipelines and Lua scripts over a bounded number of connections, to one
server or to a Cluster, and reports trouble as a `StoreError`. It knows no keys and keeps no data.

A connection that breaks is made again and what was under way is sent once more. So whatever is
given to this module must tolerate a repeat, and what ended in `StoreUnavailable` may have run.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

import orjson
from redis import exceptions as untrusted
from redis.asyncio import Redis, RedisCluster
from redis.asyncio.cluster import PipelineCommand

from memory.store.connections import sdk_client
from memory.store.errors import SDK_ERRORS, StoreError, meaning, own_errors

Arg: TypeAlias = bytes | str | int | float
# Its name is one string, also where Redis needs two words: ("XGROUP CREATE", "stream", …).
Command: TypeAlias = Sequence[Arg]
# The fields of the JSON object that a script takes.
Request: TypeAlias = Mapping[str, object]
# Bytes, int, float, bool, None, or lists, tuples and dicts of these. Who sends a command knows the
# shape of its reply and names it there.
Reply: TypeAlias = Any

CALL_TIMEOUT_S = 12.0  # includes the wait for a free connection, and repeats
MAX_SHARED = 12  # commands after which a shared round trip takes no more: replies cost memory
MAX_BLOCK_MS = 2000  # what a blocking command may ask for, so that its socket is not given up


@dataclass(frozen=True, slots=True)
class ScriptCall:
    """A script with its keys and arguments, ready to run alone or in a pipeline."""

    source: str
    digest: str
    keys: Sequence[str]
    args: Sequence[Arg]

    def by_digest(self) -> Command:
        """Run it by the name that the server knows it by."""
        return ("EVALSHA", self.digest, len(self.keys), *self.keys, *self.args)

    def by_source(self) -> Command:
        """Run it by its text, which makes the server know it."""
        return ("EVAL", self.source, len(self.keys), *self.keys, *self.args)


class Script:
    """A Lua script; calling it runs it."""

    def __init__(self, client: "RedisClient", source: str) -> None:
        self._client = client
        self._source = source
        self._digest = hashlib.sha1(source.encode()).hexdigest()  # noqa: S324 - Redis's own name

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


class RedisClient:
    """One server or one Cluster; made by `open`, ended by `close`.

    At most `max_connections` calls are under way at once, and the others wait in line; pipelines
    that wait for one server go in one round trip. A command that blocks (`XREADGROUP … BLOCK`)
    holds one connection meanwhile and asks for at most `MAX_BLOCK_MS`. `round_trips` counts what
    was sent, a pipeline once.
    """

    def __init__(self, redis: Redis | RedisCluster, max_connections: int) -> None:
        redis.set_response_callback("INFO", _as_sent)
        self.round_trips = 0
        self._redis = redis
        self._free = asyncio.Semaphore(max_connections)
        self._shared: _SharedTrip | None = None
        self._known_scripts: set[str] = set()

    @classmethod
    async def open(cls, url: str, *, max_connections: int = 4, tls_verify: bool = True) -> Self:
        """Connect to the server at `redis://`, `rediss://` (TLS) or `unix://`.

        `redis+cluster://` and `rediss+cluster://` name a node of a Cluster; the limit of
        connections is then one for each of its nodes. Without `tls_verify` any certificate will do.
        Raise a `StoreError` when the server does not answer a PING.
        """
        with own_errors("open", CALL_TIMEOUT_S):
            sdk = sdk_client(url, max_connections=max_connections, tls_verify=tls_verify)
            client = cls(sdk, max_connections)
        try:
            await client.ping()
        except BaseException:
            await client.close()
            raise
        return client

    async def close(self) -> None:
        """Give up all connections; a server that is gone already is no error."""
        with suppress(*SDK_ERRORS, TimeoutError):
            async with asyncio.timeout(CALL_TIMEOUT_S):
                if isinstance(self._redis, RedisCluster):
                    # After a lost connection it closes the others only when it has seen the nodes.
                    await self._redis.initialize()
                await self._redis.aclose()

    async def call(self, *command: Arg) -> Reply:
        """Send one command; raise a `StoreError` when it was not done."""
        async with self._exchange(str(command[0])):
            return await self._redis.execute_command(*command)

    async def pipeline(self, commands: Sequence[Command | ScriptCall]) -> list[Reply]:
        """Send commands in one round trip and return their replies; they run in their order.

        Others' commands may run in between. The first error is raised, and what follows it runs
        all the same; on a Cluster it is not sent, because there they go one after another.
        """
        replies: list[Reply] = []
        while len(replies) < len(commands):
            replies += await self._send(commands[len(replies) :])
        return replies

    async def is_replicated(self, write: Command, replicas: int, within_ms: int) -> bool:
        """Run a write; say whether it took place and so many replicas have it in time.

        They then have all that came before in its slot, too. A write that does not take place has
        to answer None, and one that does has to change something each time: what changes nothing
        is not passed on, and there is nothing to wait for. Raise a `StoreError` as `call` does.
        """
        asked = (write, ("WAIT", replicas, within_ms))
        async with self._exchange("WAIT"):
            # On one connection, for WAIT asks about the writes of its own.
            if isinstance(self._redis, RedisCluster):
                written, acknowledged = await _on_one_node(self._redis, str(write[1]), asked)
            else:
                written, acknowledged = await self._replies(asked)
            for reply in (written, acknowledged):
                if isinstance(reply, Exception):
                    raise reply
        return written is not None and bool(acknowledged >= replicas)

    def script(self, source: str) -> Script:
        """Make a Lua text callable; nothing is sent before it is called."""
        return Script(self, source)

    async def ping(self) -> None:
        """Raise a `StoreError` unless the server (every node of a Cluster) answers."""
        await self.call("PING")

    async def info(self, section: str) -> dict[str, str]:
        """Return one section of INFO, of a Cluster that of one node."""
        one_node = {"target_nodes": RedisCluster.DEFAULT_NODE} if self.is_cluster else {}
        async with self._exchange("INFO"):
            reply: bytes = await self._redis.execute_command("INFO", section, **one_node)
        pairs = (line.partition(":") for line in reply.decode().splitlines())
        return {name: value for name, colon, value in pairs if colon}

    @property
    def is_cluster(self) -> bool:
        """Whether a pipeline goes to several nodes, one command after another."""
        return isinstance(self._redis, RedisCluster)

    async def _send(self, commands: Sequence[Command | ScriptCall]) -> list[Reply]:
        """Return the replies up to the first script that the server turned out not to know.

        A server that restarted has forgotten its scripts. The rest is then sent again, rather than
        the script alone, because the order is a promise.
        """
        batch = commands[:1] if self.is_cluster else commands
        replies = await self._exchanged([self._wire_form(command) for command in batch])
        for index, reply in enumerate(replies):
            if isinstance(reply, untrusted.NoScriptError):
                self._known_scripts.clear()
                return replies[:index]
            if isinstance(reply, Exception):
                raise meaning("pipeline", reply) from reply
        self._known_scripts.update(c.digest for c in batch if isinstance(c, ScriptCall))
        return replies

    async def _exchanged(self, commands: Sequence[Command]) -> list[Reply]:
        """Send commands at once, or where no connection is free along with others' that wait.

        A shared round trip costs a caller half as much, so that a process under pressure gets more
        done. Who came first sends for all; where that one is cancelled or its time is over, the
        others send for themselves, each within its own time.
        """
        with own_errors("pipeline", CALL_TIMEOUT_S):
            async with asyncio.timeout(CALL_TIMEOUT_S):
                if self.is_cluster or not self._free.locked():
                    async with self._connection():
                        return await self._replies(commands)
                while (trip := self._shared) and len(trip.commands) < MAX_SHARED:
                    if (replies := await trip.joined(commands)) is not None:
                        return replies
                return (await self._led(commands))[: len(commands)]

    async def _led(self, commands: Sequence[Command]) -> list[Reply]:
        """Send commands, and those of others that come until a connection is free."""
        trip = self._shared = _SharedTrip(_encoded(commands))
        try:
            async with self._connection():
                if self._shared is trip:
                    self._shared = None
                trip.replies = await self._replies(trip.commands)
        except SDK_ERRORS as exc:
            trip.error = meaning("pipeline", exc)
            raise trip.error from exc
        finally:
            if self._shared is trip:
                self._shared = None
            trip.over.set()
        return trip.replies

    async def _replies(self, commands: Sequence[Command]) -> list[Reply]:
        """Return replies and, in the place of a reply, what the server objects to."""
        if len(commands) == 1:
            try:
                return [await self._redis.execute_command(*commands[0])]
            except untrusted.NoScriptError as exc:
                return [exc]
        pipe = self._redis.pipeline(transaction=False)
        for command in commands:
            pipe.execute_command(*command)
        return await pipe.execute(raise_on_error=False)

    def _wire_form(self, command: Command | ScriptCall) -> Command:
        if not isinstance(command, ScriptCall):
            return command
        known = command.digest in self._known_scripts
        return command.by_digest() if known else command.by_source()

    @asynccontextmanager
    async def _exchange(self, name: str) -> AsyncIterator[None]:
        """Use a connection within the time of a call; raise our errors instead of the SDK's."""
        with own_errors(name, CALL_TIMEOUT_S):
            async with asyncio.timeout(CALL_TIMEOUT_S), self._connection():
                yield

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[None]:
        """Wait for a connection to be free, and count a round trip."""
        async with self._free:
            self.round_trips += 1
            with _cancellation_kept():
                yield


@dataclass(slots=True)
class _SharedTrip:
    """Commands of several callers that wait for the same connection, and what became of them."""

    commands: list[Command]
    replies: list[Reply] = field(default_factory=list)
    error: StoreError | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def joined(self, commands: Sequence[Command]) -> list[Reply] | None:
        """Go along; return one's own replies, None where whoever was to send gave up."""
        first = len(self.commands)
        self.commands.extend(_encoded(commands))
        await self.over.wait()
        if self.error is not None:
            raise type(self.error)(*self.error.args) from self.error
        return self.replies[first : first + len(commands)] or None


async def _on_one_node(cluster: RedisCluster, key: str, commands: Sequence[Command]) -> list[Reply]:
    """Return replies and errors of the node that has a key, over one connection.

    Sent once: where the SDK's own pipeline of a Cluster sends again, it asks some other node.
    """
    await cluster.initialize()
    asked = [PipelineCommand(place, *command) for place, command in enumerate(commands)]
    if not (node := cluster.get_node_from_key(key)):
        raise untrusted.SlotNotCoveredError("nobody has this key")
    await node.execute_pipeline(asked)
    return [command.result for command in asked]


def _encoded(commands: Sequence[Command]) -> list[Command]:
    """Write what can fail to be written before it is among others' commands."""
    return [
        (name, *(arg.encode() if isinstance(arg, str) else arg for arg in args))
        for name, *args in commands
    ]


def _as_sent(response: bytes, **_options: object) -> bytes:
    return response


@contextmanager
def _cancellation_kept() -> Iterator[None]:
    """Cancel late rather than never: `wait_for` in the SDK may lose it before Python 3.12."""
    task = asyncio.current_task()
    requests = task.cancelling() if task else 0
    yield
    if task and task.cancelling() > requests:
        raise asyncio.CancelledError
