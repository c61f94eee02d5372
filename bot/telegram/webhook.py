"""The webhook page: checks the secret, and answers 200 when the update is stored.

It does not read the update itself.
"""

import asyncio
import hmac
import json
from http import HTTPStatus

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from bot.telegram.connection import TelegramHealth
from bot.telegram.errors import NotAccepted
from bot.telegram.intake import Accept, deliver

WEBHOOK_PATH = "/telegram"

_MAX_BODY_BYTES = 1_000_000
_BODY_S = 8.0
"""Less than a connection may take for a whole request, so that a slow caller gets an answer."""
_RETRY_AFTER_S = 5


def webhook_routes(secret: str, accept: Accept, health: TelegramHealth) -> list[Route]:
    """Return the one route. Telegram delivers again whatever is not answered with 200."""

    async def receive(request: Request) -> Response:
        if not _has_secret(request, secret):
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


def _has_secret(request: Request, secret: str) -> bool:
    given = request.headers.get("X-Telegram-Bot-Api-Secret-Token", "")
    return hmac.compare_digest(given.encode(), secret.encode())


async def _body(request: Request) -> bytes | None:
    """Read the body; return None if it is too large. The announced length is not trusted."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BODY_BYTES:
            return None
    return bytes(body)


def _json_object(body: bytes) -> dict[str, object] | None:
    # Faster readers refuse a lone surrogate. Telegram would deliver such an update again for ever.
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):  # the latter if it is nested too deep
        return None
    return value if isinstance(value, dict) else None
