"""Who may open the inspector: callers with `INSPECTOR_TOKEN`; those on this machine need it too.

A caller sends the token as a bearer token, or in a form that sets a cookie. The cookie is a time,
a random text, and a proof of both; the token cannot be computed from it. The token never stands in
an address.
"""

import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from secrets import token_hex
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request
from starlette.responses import Response

PATH = "/inspect"
_COOKIE = "inspector"
_COOKIE_S = 8 * 3600
_MAX_FORM_BYTES = 4_096
_WINDOW_S = 300
_MAX_FAILURES_OF_ONE = 10
_MAX_FAILURES = 100


class TooManyAttempts(Exception):
    """Raised for a wrong token after too many of them, of this caller or of all callers.

    The right token is always taken: behind a router all callers may have one address, so a
    stranger's guesses could lock the operator out.
    """


class UntrustedForm(Exception):
    """Raised for a form that another site may have sent, or that is too long."""


class SignIn:
    """Checks callers; `bot_token` makes a stolen cookie useless for guessing the token."""

    def __init__(self, token: str, bot_token: str, clock: Callable[[], float] = time.time) -> None:
        self._token = token.encode()
        self._key = hmac.new(bot_token.encode(), b"inspector " + self._token, "sha256").digest()
        self._clock = clock
        self._failures: list[tuple[str, float]] = []
        self._signed_out: dict[str, int] = {}

    def admits(self, request: Request) -> bool:
        """Return whether the caller has the token or a cookie; raise `TooManyAttempts`."""
        if self._is_cookie(request.cookies.get(_COOKIE, "")):
            return True
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self._is_token(request, given.strip())

    def takes(self, request: Request, form: Mapping[str, str]) -> bool:
        """Return whether a form has the token; raise `TooManyAttempts`."""
        return self._is_token(request, form.get("token", "").strip())

    def remember(self, request: Request, response: Response) -> None:
        """Set the cookie, which is valid for eight hours."""
        signed = f"{int(self._clock()) + _COOKIE_S}.{token_hex(8)}"
        response.set_cookie(
            _COOKIE,
            f"{signed}.{self._proof(signed)}",
            max_age=_COOKIE_S,
            path=PATH,
            httponly=True,
            samesite="strict",
            secure=_is_https(request),
        )

    def forget(self, request: Request, response: Response) -> None:
        """Remove the cookie from the browser, and take it no more until this process ends."""
        given = request.cookies.get(_COOKIE, "")
        if self._is_cookie(given):
            now = self._clock()
            self._signed_out = {each: at for each, at in self._signed_out.items() if at > now}
            self._signed_out[given] = int(given.partition(".")[0])
        response.delete_cookie(_COOKIE, path=PATH, httponly=True, samesite="strict")

    def _is_cookie(self, given: str) -> bool:
        signed, _, proof = given.rpartition(".")
        if not hmac.compare_digest(proof.encode(), self._proof(signed).encode()):
            return False
        until = signed.partition(".")[0]
        return until.isdecimal() and int(until) > self._clock() and given not in self._signed_out

    def _proof(self, signed: str) -> str:
        return hmac.new(self._key, signed.encode(), hashlib.sha256).hexdigest()

    def _is_token(self, request: Request, given: str) -> bool:
        """Compare a token in constant time, and count it if it is wrong."""
        if hmac.compare_digest(given.encode(), self._token):
            return True
        caller, now = request.client.host if request.client else "", self._clock()
        self._failures = [each for each in self._failures if each[1] > now - _WINDOW_S]
        own = sum(each[0] == caller for each in self._failures)
        if own >= _MAX_FAILURES_OF_ONE or len(self._failures) >= _MAX_FAILURES:
            raise TooManyAttempts
        self._failures.append((caller, now))
        return False


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form of our own page; raise `UntrustedForm` for any other form.

    Browsers name the origin of every form that they post, and no page can change it.
    """
    origin = urlsplit(request.headers.get("Origin", "")).netloc
    own = {request.headers.get("Host"), request.headers.get("X-Forwarded-Host")}
    if not origin or origin not in own:
        raise UntrustedForm
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > _MAX_FORM_BYTES:
            raise UntrustedForm
    try:
        return dict(parse_qsl(body.decode(), max_num_fields=4))
    except ValueError:
        raise UntrustedForm from None


def _is_https(request: Request) -> bool:
    """Say whether the browser used TLS; a caller that lies changes its own cookie only."""
    forwarded = request.headers.get("X-Forwarded-Proto", "").partition(",")[0]
    return "https" in (request.url.scheme, forwarded)
