"""The web page that Telegram calls: lets in only what knows the secret, answers once it is stored.

Reads no update itself.
"""

import asyncio
import hmac
import json
from http import HTTPStatus

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from bot.telegram.delivery import Accept, deliver
from bot.telegram.errors import NotAccepted
from bot.telegram.health import TelegramHealth

WEBHOOK_PATH = "/telegram"

_MAX_BODY_BYTES = 1_000_000
_BODY_S = 8.0
"""Less than a connection has for a whole request, so that a slow caller is told why."""
_RETRY_AFTER_S = 5


def webhook_routes(secret: str, accept: Accept, health: TelegramHealth) -> list[Route]:
    """Return the one route; Telegram delivers again whatever is not answered with 200."""

    async def receive(request: Request) -> Response:
        if not _knows(secret, request):
            return Response(status_code=HTTPStatus.FORBIDDEN)
        try:
            async with asyncio.timeout(_BODY_S):
                body = await _body(request)
        except (ClientDisconnect, TimeoutError):
            return Response(status_code=HTTPStatus.REQUEST_TIMEOUT)
        if body is None:
            return Response(status_code=HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        raw = _json_object(body)
        if raw is None:
            return Response(status_code=HTTPStatus.BAD_REQUEST)
        try:
            await deliver(raw, accept, health)
        except NotAccepted:
            retry_after = {"Retry-After": str(_RETRY_AFTER_S)}
            return Response(status_code=HTTPStatus.SERVICE_UNAVAILABLE, headers=retry_after)
        return Response(status_code=HTTPStatus.OK)

    return [Route(WEBHOOK_PATH, receive, methods=["POST"])]


def _knows(secret: str, request: Request) -> bool:
    told = request.headers.get("X-Telegram-Bot-Api-Secret-Token", "")
    return hmac.compare_digest(told.encode(), secret.encode())


async def _body(request: Request) -> bytes | None:
    """Read the body, None when it is too large; its announced length is not believed."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BODY_BYTES:
            return None
    return bytes(body)


def _json_object(body: bytes) -> dict[str, object] | None:
    # The standard library's reader: faster ones refuse a lone surrogate, and Telegram would then
    # deliver the same update again and again.
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):  # the latter for what is nested too deep
        return None
    return value if isinstance(value, dict) else None
