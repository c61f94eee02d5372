"""`/metrics`: for whoever knows the token, or without one for this machine alone."""

import hmac
from http import HTTPStatus
from ipaddress import ip_address

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.metering.metrics import Metrics
from memory.memory import Memory
from memory.store_errors import StoreError

_FORMAT = "text/plain; version=0.0.4; charset=utf-8"


def metrics_route(metrics: Metrics, memory: Memory, token: str | None) -> Route:
    """Return the page; `token` is asked for as a bearer."""

    async def page(request: Request) -> Response:
        if not _may_see(request, token):
            return Response(status_code=HTTPStatus.FORBIDDEN)
        metrics.round_trips.set(memory.client.round_trips)
        try:
            metrics.waiting.set(await memory.client.call("XLEN", memory.keys.doorbell))
        except StoreError:
            metrics.waiting.set(float("nan"))
        return Response(metrics.exposition(), media_type=_FORMAT)

    return Route("/metrics", page)


def _may_see(request: Request, token: str | None) -> bool:
    if token is not None:
        told = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(told.encode(), token.encode())
    try:
        return request.client is not None and ip_address(request.client.host).is_loopback
    except ValueError:
        return False
