"""`/metrics`: for whoever knows the token, or without one for this machine alone.

On a platform every call comes through its router. There, without a token, nobody may see the page.
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
"""Headers of a proxy, beside those that begin with `x-forwarded-`."""


def metrics_route(
    metrics: Metrics, memory: Memory, token: str | None, *, on_platform: bool = False
) -> Route:
    """Return the page; `token` is asked for as a bearer."""

    async def page(request: Request) -> Response:
        if not (_knows(request, token) if token else not on_platform and _is_local(request)):
            return Response(status_code=HTTPStatus.FORBIDDEN)
        metrics.round_trips.set(memory.client.round_trips)
        try:
            metrics.waiting.set(await memory.client.call("XLEN", memory.keys.ready_queue))
        except StoreError:
            metrics.waiting.set(float("nan"))
        return Response(metrics.exposition(), media_type=_FORMAT)

    return Route("/metrics", page)


def _knows(request: Request, token: str) -> bool:
    told = request.headers.get("Authorization", "").removeprefix("Bearer ")
    return hmac.compare_digest(told.encode(), token.encode())


def _is_local(request: Request) -> bool:
    """Tell whether a process of this machine asks, and for itself.

    A proxy on this machine says in a header that it asks for somebody else.
    """
    if any(name.startswith("x-forwarded") or name in _FORWARDED for name in request.headers):
        return False
    try:
        return request.client is not None and ip_address(request.client.host).is_loopback
    except ValueError:
        return False
