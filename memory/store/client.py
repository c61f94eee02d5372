"""The client of Redis or Valkey; no other package of the product uses the SDK.

If a connection breaks, the client connects again and sends once more what was on its way. So every
command must tolerate a repeat, and a command that ended in `StoreUnavailable` may have run.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from time import time
from typing import Any, Self

from redis import exceptions as untrusted
from redis.asyncio import ConnectionPool, Redis, RedisCluster
from redis.asyncio.cluster import PipelineCommand
from redis.asyncio.connection import Connection, SSLConnection, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff
from redis.connection import HiredisRespSerializer
from redis.maint_notifications import MaintNotificationsConfig

from memory.store.commands import Arg, Command, Reply, ScriptCall, SharedTrip, encoded
from memory.store.errors import (
    SDK_ERRORS,
    StoreRefused,
    StoreUnavailable,
    reading_replies,
    translate,
    translated_errors,
)

CALL_TIMEOUT_S = 12.0  # with the wait for a free connection, and repeats
MAX_SHARED = 12  # commands of a shared round trip, because all replies are in memory at once
MAX_BLOCK_MS = 2000  # shorter than the time after which a silent socket counts as broken
_SCAN_COUNT = 1_000


class RedisClient:
    """A client of one server or one Cluster; made by `open`, ended by `close`.

    At most `max_connections` calls run at once, and further calls wait. Pipelines that wait for
    one server share a round trip. A blocking command (`XREADGROUP … BLOCK`) holds one connection
    and may block for at most `MAX_BLOCK_MS`.
    """

    ahead_s = 0.0

    def __init__(self, redis: Redis | RedisCluster, max_connections: int) -> None:
        redis.set_response_callback("INFO", lambda response, **_: response)
        self.round_trips = 0  # a pipeline counts once
        self.max_connections = max_connections
        # On a Cluster a pipeline goes to several nodes, one command after another.
        self.is_cluster = isinstance(redis, RedisCluster)
        self._redis = redis
        self._free = asyncio.Semaphore(max_connections)
        self._shared: SharedTrip | None = None
        self._known_scripts: set[str] = set()

    @classmethod
    async def open(cls, url: str, *, max_connections: int = 4, tls_verify: bool = True) -> Self:
        """Connect to the server at `redis://`, `rediss://` (TLS) or `unix://`.

        `redis+cluster://` and `rediss+cluster://` name a node of a Cluster; then the limit of
        connections holds for each of its nodes. Without `tls_verify` any certificate is accepted,
        if the address has no `ssl_cert_reqs`. Raise a `StoreError` if no PING is answered.
        """
        with translated_errors("open", CALL_TIMEOUT_S):
            sdk = sdk_client(url, max_connections=max_connections, tls_verify=tls_verify)
            client = cls(sdk, max_connections)
        try:
            await client.ping()
        except BaseException:
            await client.close()
            raise
        return client

    async def close(self) -> None:
        """Close all connections; it is not an error if the server is gone."""
        with suppress(*SDK_ERRORS, TimeoutError):
            async with asyncio.timeout(CALL_TIMEOUT_S):
                if isinstance(self._redis, RedisCluster):
                    # After a lost connection the SDK closes the others only if it knows the nodes.
                    await self._redis.initialize()
                await self._redis.aclose()

    async def call(self, *command: Arg) -> Reply:
        """Send one command and return its reply; raise a `StoreError` if it was not done."""
        async with self._exchange(str(command[0])):
            [reply] = await self._replies([command])
            if isinstance(reply, Exception):
                raise reply
            return reply

    async def pipeline(self, commands: Sequence[Command | ScriptCall]) -> list[Reply]:
        """Send commands in one round trip and return their replies, in order.

        Commands of other callers may run in between. The first error is raised. The commands after
        it run all the same; on a Cluster they are not sent, because there each is sent alone.
        """
        replies: list[Reply] = []
        while len(replies) < len(commands):
            rest = commands[len(replies) :]
            batch = rest[:1] if self.is_cluster else rest
            sent: list[Command] = []
            for each in batch:
                if isinstance(each, ScriptCall):
                    # The source also makes the server know the script.
                    is_known = each.digest in self._known_scripts
                    script = ("EVALSHA", each.digest) if is_known else ("EVAL", each.source)
                    sent.append((*script, len(each.keys), *each.keys, *each.args))
                else:
                    sent.append(each)

            for reply in await self._exchanged(sent):
                if isinstance(reply, untrusted.NoScriptError):
                    # A server forgets its scripts when it restarts. Then all of the rest is sent
                    # again, because commands must run in their order.
                    self._known_scripts.clear()
                    break
                if isinstance(reply, Exception):
                    raise translate("pipeline", reply) from reply
                replies.append(reply)
            else:
                self._known_scripts.update(c.digest for c in batch if isinstance(c, ScriptCall))
        return replies

    async def is_replicated(self, write: Command, replicas: int, within_ms: int) -> bool:
        """Run a write; return whether it took place and so many replicas have it in time.

        Then they also have all earlier writes in its slot. A write that does not take place must
        reply None. One that does must change something, because Redis sends no unchanged value to
        replicas. Raise a `StoreError`.
        """
        asked = (write, ("WAIT", replicas, within_ms))
        replies: list[Reply]
        async with self._exchange("WAIT"):
            # On one connection, because WAIT looks at the writes of its own connection.
            if isinstance(self._redis, RedisCluster):
                await self._redis.initialize()
                if not (node := self._redis.get_node_from_key(str(write[1]))):
                    raise untrusted.SlotNotCoveredError("no node has this key")
                # The SDK's own pipeline would repeat the commands on another node.
                sent = [PipelineCommand(at, *command) for at, command in enumerate(asked)]
                await node.execute_pipeline(sent)
                replies = [command.result for command in sent]
            else:
                replies = await self._replies(asked)
            for reply in replies:
                if isinstance(reply, Exception):
                    raise reply
        written, acknowledged = replies
        return written is not None and bool(acknowledged >= replicas)

    async def messages(self, channel: str) -> AsyncIterator[bytes]:
        """Yield what is published on a channel, over one connection; raise a `StoreError`.

        Yield b"" each time the subscription begins: what was published before may be lost.
        """
        with translated_errors("SUBSCRIBE", CALL_TIMEOUT_S):
            async with self._connection():
                async for message in published(self._redis, channel):
                    yield message

    async def keys_like(self, pattern: str) -> AsyncIterator[str]:
        """Yield the keys of all nodes that match a pattern, some twice; raise a `StoreError`."""
        with translated_errors("SCAN", CALL_TIMEOUT_S):
            # Most keys come without a round trip, so `_connection` would count too many.
            found = aiter(self._redis.scan_iter(match=pattern, count=_SCAN_COUNT))
            while True:
                async with asyncio.timeout(CALL_TIMEOUT_S), self._free:
                    key = await anext(found, None)
                if key is None:
                    return
                yield key.decode()

    async def ping(self) -> None:
        """Raise a `StoreError` unless the server (each node of a Cluster) answers."""
        await self.call("PING")

    async def server_time(self) -> float:
        """Return the time of the server in Unix seconds."""
        seconds, microseconds = await self.call("TIME")
        return int(seconds) + int(microseconds) / 1e6

    async def clock_ahead_s(self) -> float:
        """Return how many seconds the server's clock is ahead of the one of this machine."""
        began = time()
        server = await self.server_time()
        self.ahead_s = server - (began + time()) / 2
        return self.ahead_s

    def now(self) -> float:
        """Return the time of the server in Unix seconds, as its clock was last compared."""
        return time() + self.ahead_s

    async def info(self, section: str) -> dict[str, str]:
        """Return one section of INFO; of a Cluster, that of one node."""
        reply: bytes = await self.call("INFO", section)
        pairs = (line.partition(":") for line in reply.decode().splitlines())
        return {name: value for name, colon, value in pairs if colon}

    async def _exchanged(self, commands: Sequence[Command]) -> list[Reply]:
        """Send commands at once, or share a round trip if no connection is free.

        A shared round trip costs half as much, so that a busy process gets more done. The first
        caller sends for all. If it is cancelled or its time is over, the others send for
        themselves, each within its own time.
        """
        with translated_errors("pipeline", CALL_TIMEOUT_S):
            async with asyncio.timeout(CALL_TIMEOUT_S):
                if self.is_cluster or not self._free.locked():
                    async with self._connection():
                        return await self._replies(commands)
                while (trip := self._shared) and len(trip.commands) < MAX_SHARED:
                    if (replies := await trip.join(commands)) is not None:
                        return replies
                return (await self._led(commands))[: len(commands)]

    async def _led(self, commands: Sequence[Command]) -> list[Reply]:
        """Send commands, and those that other callers add until a connection is free."""
        trip = self._shared = SharedTrip(encoded(commands))
        try:
            async with self._connection():
                if self._shared is trip:
                    self._shared = None
                trip.replies = await self._replies(trip.commands)
        except SDK_ERRORS as exc:
            trip.error = translate("pipeline", exc)
            raise trip.error from exc
        finally:
            if self._shared is trip:
                self._shared = None
            trip.over.set()
        return trip.replies

    async def _replies(self, commands: Sequence[Command]) -> list[Reply]:
        """Return replies; an error of the server stands in the place of its reply.

        The SDK's own pipeline is not used, because it calls twice as many functions.
        """
        redis: Any = self._redis
        if self.is_cluster:  # one command alone, see `pipeline`
            [command] = encoded(commands)
            try:
                with reading_replies():
                    return [await redis.execute_command(*command)]
            except untrusted.ResponseError as exc:
                return [exc]
        pool = redis.connection_pool
        connection = pool.get_available_connection()
        try:
            # A connection that was closed, or has data left of an earlier command, is made again.
            if not connection.is_connected or await connection.can_read():
                async with asyncio.timeout(SOCKET_TIMEOUT_S):
                    await pool.ensure_connection(connection)
            replies: list[Reply] = await connection.retry.call_with_retry(
                lambda: _sent(redis, connection, commands), lambda _: connection.disconnect()
            )
            errors = [translate("", reply) for reply in replies if isinstance(reply, Exception)]
            if any(isinstance(error, StoreUnavailable) for error in errors):
                # After a failover the address may name another server.
                await connection.disconnect(nowait=True)
        except BaseException:  # replies may be left, which the next call would take for its own
            await connection.disconnect(nowait=True)
            raise
        finally:
            await pool.release(connection)
        return replies

    @asynccontextmanager
    async def _exchange(self, name: str) -> AsyncIterator[None]:
        """Use a connection within the time of a call; raise our errors instead of the SDK's."""
        with translated_errors(name, CALL_TIMEOUT_S):
            async with asyncio.timeout(CALL_TIMEOUT_S), self._connection():
                yield

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[None]:
        """Wait for a free connection, and count a round trip.

        Raise a cancellation that the SDK lost: `wait_for` may lose one before Python 3.12.
        """
        async with self._free:
            self.round_trips += 1
            task = asyncio.current_task()
            requests = task.cancelling() if task else 0
            try:
                yield
            finally:  # also after an error, because its caller may go on, such as after NOGROUP
                if task and task.cancelling() > requests:
                    raise asyncio.CancelledError


SOCKET_TIMEOUT_S = 5.0
_SILENCE_S = 10.0  # a channel that is silent for so long is asked whether it still works
_pack: Any = HiredisRespSerializer().pack
_SLOTS, _MAX_NODES = 16_384, 1_000  # of a Cluster; more nodes than that do not work well together
URL_OPTIONS = {"connection_class", "db", "host", "password", "path", "port", "username"} | {
    f"ssl_{name}"
    for name in ("ca_certs", "ca_data", "cert_reqs", "certfile", "check_hostname", "keyfile")
}


def sdk_client(url: str, *, max_connections: int, tls_verify: bool) -> Redis | RedisCluster:
    """Return a client that connects when first used; raise `StoreRefused` for a bad address."""
    scheme, _, rest = url.partition("://")
    try:
        given = parse_url(f"{scheme.removesuffix('+cluster')}://{rest}")
    except ValueError:  # the text of the error may quote a password
        raise StoreRefused("the address of the store cannot be read") from None
    # An OSError is one of connecting.
    retried: Any = (OSError, untrusted.ConnectionError, untrusted.TimeoutError)
    options: dict[str, Any] = {
        **{name: value for name, value in given.items() if name in URL_OPTIONS},
        "driver_info": None,  # else each connection parses the SDK's METADATA to state its version
        "health_check_interval": 30,
        # Off, because otherwise a connection with unread data would be used again.
        "maint_notifications_config": MaintNotificationsConfig(enabled=False),
        "max_connections": max_connections,
        "retry": Retry(ExponentialWithJitterBackoff(base=0.05, cap=1), 3, retried),
        "socket_connect_timeout": SOCKET_TIMEOUT_S,
    }
    kind = options.pop("connection_class", Connection)
    if tls := kind is SSLConnection:
        asked = options.get("ssl_cert_reqs", "required" if tls_verify else "none")
        options["ssl_cert_reqs"] = asked.lower().removeprefix("cert_")  # Celery asks for CERT_NONE
        if options["ssl_cert_reqs"] not in ("none", "optional", "required"):
            raise StoreRefused("ssl_cert_reqs in the address has to be none or required")
    if scheme.endswith("+cluster"):
        cluster = RedisCluster(ssl=tls, socket_timeout=SOCKET_TIMEOUT_S, **options)
        cluster.set_response_callback("CLUSTER SLOTS", checked_slots)
        return cluster
    # `_sent` has the time limit. With one of its own the SDK makes a task for each round trip.
    return Redis.from_pool(ConnectionPool(kind, socket_timeout=None, **options))


def checked_slots(response: Reply, **_: Any) -> Reply:
    """Return the slots of a Cluster and their nodes; raise an error of the SDK if some are wrong.

    The SDK would walk through any range of slots, and connect to any number of nodes.
    """
    with reading_replies():
        ranges = [range(first, last + 1) for first, last, *_ in response]
        nodes = {(host, port) for _, _, *nodes in response for host, port, *_ in nodes}
        covered = sum(map(len, ranges))
        if covered > _SLOTS or len(nodes) > _MAX_NODES:
            raise ValueError
    if covered < _SLOTS:  # the Cluster is being set up, or has lost nodes
        raise untrusted.SlotNotCoveredError
    return response


async def _sent(redis: Redis, connection: Any, commands: Sequence[Command]) -> list[Reply]:
    """Return replies, errors among them; raise `TimeoutError` if none comes for some seconds."""
    now, replies = asyncio.get_running_loop().time, list[Reply]()
    async with asyncio.timeout(SOCKET_TIMEOUT_S) as limit:
        packed = [piece for command in commands for piece in _pack(*command)]
        await connection.send_packed_command(packed)
        with reading_replies():
            for command in commands:
                try:
                    replies.append(await redis.parse_response(connection, str(command[0])))
                except untrusted.ResponseError as exc:
                    replies.append(exc)
                limit.reschedule(now() + SOCKET_TIMEOUT_S)
    return replies


async def published(redis: Redis | RedisCluster, channel: str) -> AsyncIterator[bytes]:
    """Yield the messages of a channel, and b"" each time the subscription begins.

    The nodes of a Cluster pass on what is published, so one of them is enough.
    """
    if isinstance(redis, RedisCluster):
        await redis.initialize()
    async with redis.pubsub() as subscription:
        async with asyncio.timeout(SOCKET_TIMEOUT_S):
            await subscription.subscribe(channel)
        is_asked = False
        while True:
            # While a new connection is greeted, the SDK has no time limit of its own.
            async with asyncio.timeout(_SILENCE_S + SOCKET_TIMEOUT_S):
                with reading_replies():
                    message = await subscription.get_message(timeout=_SILENCE_S)
            # Python 3.11 loses a cancellation that comes when the SDK has just sent SUBSCRIBE.
            if (task := asyncio.current_task()) and task.cancelling():
                raise asyncio.CancelledError
            if message is None and is_asked:
                raise StoreUnavailable("SUBSCRIBE: the connection is silent")
            is_asked = message is None
            if message is None:
                async with asyncio.timeout(SOCKET_TIMEOUT_S):
                    await subscription.ping()
            elif message["type"] == "subscribe":
                yield b""
            elif message["type"] == "message":
                yield message["data"]
