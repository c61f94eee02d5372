"""The web server: Telegram's webhook and the health pages.

It handles no signals; its owner decides when it stops.
"""

import asyncio
import contextlib
import socket
from collections.abc import Generator, Sequence
from pathlib import Path

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import BaseRoute, Route, Router

from bot.runtime.http_protocol import BoundedHttpProtocol, Connections, ignore_disconnects
from bot.telegram.connection import TelegramHealth
from memory.store.client import RedisClient
from memory.store.errors import StoreError

BASE_STYLE = Path(__file__).parent / "base.css"
"""The look of all pages."""

_PING_S = 3.0
_CHECK_EVERY_S = 1.0


class PortUnavailable(Exception):
    """Raised when a port cannot be listened on, mostly because another process does."""

    def __init__(self, port: int, error: OSError) -> None:
        super().__init__(f"cannot listen on port {port}: {error.strerror}")


def health_routes(
    store: RedisClient, health: TelegramHealth, *, has_webhook: bool, wait_replicas: int = 0
) -> list[BaseRoute]:
    """Return `/healthz` (the process lives) and `/readyz` (Redis and Telegram answer).

    With fewer than `wait_replicas` replicas Redis is not ready, because intake accepts no message.
    """
    redis = _RedisCheck(store, wait_replicas)

    async def healthz(_: Request) -> PlainTextResponse:
        return PlainTextResponse("ok")

    async def readyz(_: Request) -> JSONResponse:
        checks = {
            "redis": await redis.state(),
            "telegram": _telegram_state(health, has_webhook=has_webhook),
        }
        is_ready = all(state == "ok" for state in checks.values())
        details = {
            "last_update_s_ago": health.age(health.last_update_at),
            "webhook_error": health.webhook_error,
            "webhook_error_s_ago": health.age(health.webhook_error_at),
        }
        return JSONResponse(checks | details, status_code=200 if is_ready else 503)

    return [Route("/healthz", healthz), Route("/readyz", readyz)]


class WebServer:
    """Serves routes on a port in the running loop; the constructor raises `PortUnavailable`."""

    def __init__(self, routes: Sequence[BaseRoute], port: int, host: str = "0.0.0.0") -> None:  # noqa: S104 - a platform's router comes from outside
        config = uvicorn.Config(
            ignore_disconnects(Router(routes)),
            http=BoundedHttpProtocol,
            # No header may claim where a call comes from: `/metrics` checks it.
            proxy_headers=False,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=5,
            timeout_keep_alive=75,
        )
        self._server = _Server(config)
        # A socket of `create_server` names no protocol. Without it asyncio does not set
        # TCP_NODELAY, and each further answer on a connection waits 40 ms.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Each connection inherits it. By default the system keeps up to 4 MB of an unread answer.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * 1024)
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
        """Accept no more requests and let running ones finish."""
        self._server.should_exit = True


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.server_state = Connections()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Handle no signals: uvicorn would raise them again and end the process during a turn."""
        yield


class _RedisCheck:
    """Checks Redis at most once a second, however many ask: its connections are for the bot."""

    def __init__(self, store: RedisClient, wait_replicas: int) -> None:
        self._store = store
        self._wait_replicas = wait_replicas
        self._checked_at = float("-inf")
        self._state = ""
        self._checking = asyncio.Lock()

    async def state(self) -> str:
        """Return "ok", or what is wrong."""
        now = asyncio.get_running_loop().time
        async with self._checking:
            if now() - self._checked_at >= _CHECK_EVERY_S:
                self._state = await self._check()
                self._checked_at = now()
            return self._state

    async def _check(self) -> str:
        wait_replicas = self._wait_replicas
        try:
            async with asyncio.timeout(_PING_S):
                await self._store.ping()
                policy = (await self._store.info("memory")).get("maxmemory_policy", "noeviction")
                replication = await self._store.info("replication") if wait_replicas else {}
        except (StoreError, TimeoutError):
            return "unreachable"
        if policy != "noeviction":
            return f"maxmemory-policy is {policy}, must be noeviction"
        linked = int(replication.get("connected_slaves", wait_replicas))
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
