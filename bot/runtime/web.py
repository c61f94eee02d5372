"""The web server: Telegram's webhook and the pages that say how we are.

Owns no signals: who runs it decides when it stops.
"""

import asyncio
import contextlib
import socket
from collections.abc import Generator, Sequence

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import BaseRoute, Route, Router

from bot.runtime.http_protocol import BoundedHttpProtocol, Connections, ignore_disconnects
from bot.telegram.connection import TelegramHealth
from memory.store.client import RedisClient
from memory.store.errors import StoreError

_PING_S = 3.0
_LOOK_EVERY_S = 1.0


class PortUnavailable(Exception):  # noqa: N818 - says when
    """Raised when a port cannot be listened on, mostly because somebody else does."""

    def __init__(self, port: int, error: OSError) -> None:
        super().__init__(f"cannot listen on port {port}: {error.strerror}")


def health_routes(
    store: RedisClient, health: TelegramHealth, *, has_webhook: bool, wait_replicas: int = 0
) -> list[BaseRoute]:
    """Return `/healthz` (the process lives) and `/readyz` (Redis and Telegram answer).

    Redis is not ready with fewer than `wait_replicas`, for then no message is taken.
    """
    redis = _RedisLook(store, wait_replicas)

    async def healthz(_: Request) -> PlainTextResponse:
        return PlainTextResponse("ok")

    async def readyz(_: Request) -> JSONResponse:
        checks = {
            "redis": await redis.state(),
            "telegram": _telegram_state(health, has_webhook=has_webhook),
        }
        is_ready = all(state == "ok" for state in checks.values())
        told = {
            "last_update_s_ago": health.age(health.last_update_at),
            "webhook_error": health.webhook_error,
            "webhook_error_s_ago": health.age(health.webhook_error_at),
        }
        return JSONResponse(checks | told, status_code=200 if is_ready else 503)

    return [Route("/healthz", healthz), Route("/readyz", readyz)]


class WebServer:
    """Serves routes on a port within the running loop; raises `PortUnavailable`."""

    def __init__(self, routes: Sequence[BaseRoute], port: int, host: str = "0.0.0.0") -> None:  # noqa: S104 - a platform's router comes from outside
        config = uvicorn.Config(
            ignore_disconnects(Router(routes)),
            http=BoundedHttpProtocol,
            # A header must not say where a call comes from: `/metrics` asks.
            proxy_headers=False,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=5,
            timeout_keep_alive=75,
        )
        self._server = _Server(config)
        # Made by hand: one from `create_server` names no protocol, and without that asyncio leaves
        # out TCP_NODELAY, so that each further answer on a connection waits 40 ms.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
            self._socket.listen()
        except OSError as error:
            self._socket.close()
            raise PortUnavailable(port, error) from error
        self.port: int = self._socket.getsockname()[1]

    async def run(self) -> None:
        """Serve until `stop`."""
        try:
            await self._server.serve(sockets=[self._socket])
        finally:
            self._socket.close()

    def stop(self) -> None:
        """Take no more calls and let those under way finish."""
        self._server.should_exit = True


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.server_state = Connections()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave signals alone: uvicorn would raise them again and end the process in the middle."""
        yield


class _RedisLook:
    """Looks at Redis, once a second for all who ask: its connections are for the bot."""

    def __init__(self, store: RedisClient, wait_replicas: int) -> None:
        self._store = store
        self._wait_replicas = wait_replicas
        self._looked_at = float("-inf")
        self._state = ""
        self._looking = asyncio.Lock()

    async def state(self) -> str:
        """Return "ok" or what is wrong."""
        now = asyncio.get_running_loop().time
        async with self._looking:
            if now() - self._looked_at >= _LOOK_EVERY_S:
                self._state = await self._look()
                self._looked_at = now()
            return self._state

    async def _look(self) -> str:
        wait_replicas = self._wait_replicas
        try:
            async with asyncio.timeout(_PING_S):
                await self._store.ping()
                policy = (await self._store.info("memory")).get("maxmemory_policy", "noeviction")
                told = await self._store.info("replication") if wait_replicas else {}
        except (StoreError, TimeoutError):
            return "unreachable"
        if policy != "noeviction":
            return f"maxmemory-policy is {policy}, must be noeviction"
        linked = int(told.get("connected_slaves", wait_replicas))
        if linked < wait_replicas:
            return f"{linked} replicas are connected, INTAKE_WAIT_REPLICAS is {wait_replicas}"
        return "ok"


def _telegram_state(health: TelegramHealth, *, has_webhook: bool) -> str:
    if health.identity is None:
        return f"not reached: {health.last_error}" if health.last_error else "not reached yet"
    if health.last_error:
        return health.last_error
    if has_webhook and not health.webhook_set:
        return "webhook not set yet"
    return "ok"
