"""`/metrics`: for callers with the token. If no token is set, only for callers on this machine.

On a platform every call comes through a router. If no token is set there, every call is refused.
"""

import hmac
from http import HTTPStatus
from ipaddress import ip_address

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.metrics.metrics import Metrics
from memory.memory import Memory
from memory.store.errors import StoreError

_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
_FORWARDED = ("forwarded", "via", "x-real-ip", "true-client-ip", "cf-connecting-ip")
"""Headers that a proxy adds. Headers that begin with `x-forwarded-` count too."""


def metrics_route(
    metrics: Metrics, memory: Memory, token: str | None, *, on_platform: bool = False
) -> Route:
    """Return the route of the page; `token` is the bearer token that callers must send."""

    async def page(request: Request) -> Response:
        if not (_knows(request, token) if token else not on_platform and _is_local(request)):
            return Response(status_code=HTTPStatus.FORBIDDEN)
        metrics.round_trips.set(memory.client.round_trips)
        try:
            metrics.wake_ups.set(await memory.client.call("XLEN", memory.keys.ready_queue))
        except StoreError:
            metrics.wake_ups.set(float("nan"))
        return Response(metrics.exposition(), media_type=_FORMAT)

    return Route("/metrics", page)


def _knows(request: Request, token: str) -> bool:
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    return hmac.compare_digest(given.encode(), token.encode())


def _is_local(request: Request) -> bool:
    """Return whether the caller is a process of this machine that is no proxy.

    A proxy on this machine asks for another caller, and its headers say so.
    """
    if any(name.startswith("x-forwarded") or name in _FORWARDED for name in request.headers):
        return False
    try:
        return request.client is not None and ip_address(request.client.host).is_loopback
    except ValueError:
        return False
