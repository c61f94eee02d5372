"""What the SDK offers only in parts: a client for an address, one node of a Cluster, a channel."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from redis import exceptions as untrusted
from redis.asyncio import ConnectionPool, Redis, RedisCluster
from redis.asyncio.cluster import PipelineCommand
from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff
from redis.connection import HiredisRespSerializer
from redis.maint_notifications import MaintNotificationsConfig

from memory.store.commands import Command, Reply
from memory.store.errors import StoreRefused, StoreUnavailable

SOCKET_TIMEOUT_S = 5.0
_SILENCE_S = 10.0
"""A channel that is silent for so long is asked whether its connection still works."""
URL_OPTIONS = {"connection_class", "db", "host", "password", "path", "port", "username"} | {
    f"ssl_{name}"
    for name in ("ca_certs", "ca_data", "cert_reqs", "certfile", "check_hostname", "keyfile")
}


def sdk_client(url: str, *, max_connections: int, tls_verify: bool) -> Redis | RedisCluster:
    """Return a client that connects when it is first used.

    Raise `StoreRefused` if the address cannot be read.
    """
    scheme, _, rest = url.partition("://")
    try:
        given = parse_url(f"{scheme.removesuffix('+cluster')}://{rest}")
    except ValueError:  # the text of the error may quote a password
        raise StoreRefused("the address of the store cannot be read") from None
    retried: Any = (
        OSError,
        untrusted.ConnectionError,
        untrusted.TimeoutError,
    )  # OSError: connecting
    options: dict[str, Any] = {
        **{name: value for name, value in given.items() if name in URL_OPTIONS},
        "health_check_interval": 30,
        # Off, because otherwise a connection with unread data would be used again.
        "maint_notifications_config": MaintNotificationsConfig(enabled=False),
        "max_connections": max_connections,
        "retry": Retry(ExponentialWithJitterBackoff(base=0.05, cap=1), 3, retried),
        "socket_timeout": SOCKET_TIMEOUT_S,
    }
    tls = options.get("connection_class") is SSLConnection
    if tls:
        options.setdefault("ssl_cert_reqs", "required" if tls_verify else "none")
    kind = options.pop("connection_class", Connection)
    if scheme.endswith("+cluster"):
        return RedisCluster(ssl=tls, **options)
    return Redis.from_pool(ConnectionPool(_writing_in_c(kind), **options))


async def on_one_node(cluster: RedisCluster, key: str, commands: Sequence[Command]) -> list[Reply]:
    """Return replies and errors of the node that has a key, over one connection.

    The commands are sent once: the SDK's own pipeline would repeat them on another node.
    """
    await cluster.initialize()
    sent = [PipelineCommand(at, *command) for at, command in enumerate(commands)]
    if not (node := cluster.get_node_from_key(key)):
        raise untrusted.SlotNotCoveredError("no node has this key")
    await node.execute_pipeline(sent)
    return [command.result for command in sent]


async def published(redis: Redis | RedisCluster, channel: str) -> AsyncIterator[bytes]:
    """Yield the messages of a channel, and b"" each time the subscription begins.

    The nodes of a Cluster pass on what is published, so one of them is enough.
    """
    if isinstance(redis, RedisCluster):
        await redis.initialize()
    async with redis.pubsub() as subscription:
        await subscription.subscribe(channel)
        is_asked = False
        while True:
            message = await subscription.get_message(timeout=_SILENCE_S)
            # Python 3.11 loses a cancellation that comes when the SDK has just sent SUBSCRIBE.
            if (task := asyncio.current_task()) and task.cancelling():
                raise asyncio.CancelledError
            if message is None and is_asked:
                raise StoreUnavailable("SUBSCRIBE: the connection is silent")
            is_asked = message is None
            if message is None:
                await subscription.ping()
            elif message["type"] == "subscribe":
                yield b""
            elif message["type"] == "message":
                yield message["data"]


def _writing_in_c(kind: type[AbstractConnection]) -> type[AbstractConnection]:
    """Return a connection class that packs commands in C, in less than half the time.

    The SDK does the same for its blocking connections. A Cluster chooses its connections itself.
    """

    class WritingInC(kind):  # type: ignore[misc, valid-type]
        def pack_command(self, *args: Any) -> Any:
            return HiredisRespSerializer().pack(*args)

    return WritingInC
