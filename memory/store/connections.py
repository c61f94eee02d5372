"""Makes the SDK's client for an address of Redis or Valkey. Sends nothing."""

from typing import Any

from redis import exceptions as untrusted
from redis.asyncio import ConnectionPool, Redis, RedisCluster
from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff
from redis.connection import HiredisRespSerializer
from redis.maint_notifications import MaintNotificationsConfig

from memory.store.errors import StoreRefused

SOCKET_TIMEOUT_S = 5.0
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


def _writing_in_c(kind: type[AbstractConnection]) -> type[AbstractConnection]:
    """Return a connection class that packs commands in C, in less than half the time.

    The SDK does the same for its blocking connections. A Cluster chooses its connections itself.
    """

    class WritingInC(kind):  # type: ignore[misc, valid-type]
        def pack_command(self, *args: Any) -> Any:
            return HiredisRespSerializer().pack(*args)

    return WritingInC
