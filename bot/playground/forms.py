"""The forms of the page: who may post them, how they are read, and what a refusal says."""

from http import HTTPStatus
from urllib.parse import quote

from starlette.middleware.base import RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import Response

from bot.playground.bot_api.api_errors import BadRequestError
from bot.playground.bot_api.parameters import Parameters, read_parameters
from bot.playground.bot_api.values import StoredFile
from bot.playground.scene import SceneFull
from memory.store.errors import StoreError

_MAX_BODY_BYTES = 21 * 2**20
"""The largest file that Telegram takes, with its text."""

_READABLE = ("application/json", "text/")
_SHOWN = ("image/jpeg", "image/png", "image/gif", "image/webp", "audio/")
"""Types of files that the page shows or plays; none of them can hold a script."""
_POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"


async def guard(request: Request, call_next: RequestResponseEndpoint) -> Response:
    """Refuse forms of other pages, and forbid this page to load anything from outside.

    Browsers name the origin of every form that they post; a post without an origin is refused too.
    """
    origin, own = request.headers.get("origin"), f"http://{request.headers.get('host')}"
    if origin not in (None, own) or (origin is None and request.method != "GET"):
        return Response(status_code=HTTPStatus.FORBIDDEN)
    response = await call_next(request)
    response.headers["Content-Security-Policy"] = _POLICY
    response.headers["Cache-Control"] = "no-store"
    return response


class TooLarge(Exception):
    """Raised when a form is larger than the largest file with its text."""


async def read_form(request: Request) -> Parameters:
    """Return the fields and files of a form; raise `TooLarge` or `BadRequestError`."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > _MAX_BODY_BYTES:
            raise TooLarge
    return read_parameters("", request.headers.get("content-type", ""), bytes(body))


def file_response(file: StoredFile) -> Response:
    """Return a file of a chat: text opens as plain text, pictures and sounds as they are.

    Other files are downloaded.
    """
    kind = "application/octet-stream"
    if file.mime_type.startswith(_READABLE):
        kind = "text/plain; charset=utf-8"
    elif file.mime_type.startswith(_SHOWN):
        kind = file.mime_type
    how = "attachment" if kind == "application/octet-stream" else "inline"
    headers = {
        "Content-Disposition": f"{how}; filename*=UTF-8''{quote(file.name or 'file')}",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(file.content, headers=headers, media_type=kind)


async def refused(_: Request, error: Exception) -> Response:
    """Return what the page says about an error."""
    text, status = next(said for kind, said in REFUSALS.items() if isinstance(error, kind))
    return Response(text, status)


REFUSALS: dict[type[Exception], tuple[str, HTTPStatus]] = {
    SceneFull: ("This page is full: no more people or topics fit.", HTTPStatus.CONFLICT),
    TooLarge: ("Telegram takes files up to 20 MB.", HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    BadRequestError: ("This form cannot be read.", HTTPStatus.BAD_REQUEST),
    StoreError: (
        "The playground's Valkey does not answer.",
        HTTPStatus.SERVICE_UNAVAILABLE,
    ),
}
