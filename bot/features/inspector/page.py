"""`/inspect`: what the running bot does, for its operator. One page, rendered here, read-only.

Nobody reads people's words on it, except those of a conversation whose people allow it for an hour.

Callers with `INSPECTOR_TOKEN` may open it; those on this machine need it too. They send it as a
bearer token, or in a form that sets a cookie. The cookie is a time, a random text, and a proof of
both; the token cannot be computed from it. The token never stands in an address.
"""

import asyncio
import hashlib
import hmac
import time
from base64 import b64encode
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from secrets import token_hex
from urllib.parse import parse_qsl

import structlog
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from bot.features.inspector.operator_look import OperatorLook
from bot.features.inspector.state import WATCHED_S, LiveReader
from bot.http_client import read_within
from bot.runtime.pages import BASE_STYLE, page_templates
from memory.store.commands import Arg, Reply
from memory.store.errors import StoreError
from memory.store.store import Store

log = structlog.get_logger(__name__)

WEB = Path(__file__).parent / "web"
_REFRESH_S = 5
_FIRST_REPORTS_S = 1.3  # a process learns within a second that somebody watches, and then reports
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

    def __init__(
        self, token: str, bot_token: str, store: Store, clock: Callable[[], float] = time.time
    ) -> None:
        self._store = store
        self._token = token.encode()
        self._key = hmac.new(bot_token.encode(), b"inspector " + self._token, "sha256").digest()
        self._clock = clock
        self._failures: list[tuple[str, float]] = []

    async def admits(self, request: Request) -> bool:
        """Return whether it has the token or a cookie; raise `TooManyAttempts` or `StoreError`."""
        cookie = _cookie_of(request)
        if self._is_cookie(cookie) and not await self._call("EXISTS", cookie):
            return True
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self.takes(request, given)

    def remember(self, request: Request, response: Response) -> None:
        """Set the cookie, which is valid for eight hours."""
        signed = f"{int(self._clock()) + _COOKIE_S}.{token_hex(8)}"
        # A caller that lies about this changes its own cookie only.
        forwarded = request.headers.get("X-Forwarded-Proto", "").partition(",")[0]
        response.set_cookie(
            _COOKIE,
            f"{signed}.{self._proof(signed)}",
            max_age=_COOKIE_S,
            path=PATH,
            httponly=True,
            samesite="strict",
            secure="https" in (request.url.scheme, forwarded),
        )

    async def forget(self, request: Request, response: Response) -> None:
        """Remove the cookie from the browser, and never take it again; raise `StoreError`."""
        cookie = _cookie_of(request)
        if self._is_cookie(cookie):
            await self._call("SET", cookie, 1, "EX", _COOKIE_S)
        response.delete_cookie(_COOKIE, path=PATH, httponly=True, samesite="strict")

    async def _call(self, command: str, cookie: str, *arguments: Arg) -> Reply:
        """Call a command on the key that marks a cookie, by its random text, as signed out."""
        name = self._store.keys.of_feature("inspector", f"out:{cookie.split('.')[1]}")
        return await self._store.client.call(command, name, *arguments)

    def _is_cookie(self, given: str) -> bool:
        signed, _, proof = given.rpartition(".")
        if not hmac.compare_digest(proof.encode(), self._proof(signed).encode()):
            return False
        until = signed.partition(".")[0]
        return until.isdecimal() and int(until) > self._clock()

    def _proof(self, signed: str) -> str:
        return hmac.new(self._key, signed.encode(), hashlib.sha256).hexdigest()

    def takes(self, request: Request, given: str) -> bool:
        """Return whether this is the token, and count a wrong one; raise `TooManyAttempts`."""
        if hmac.compare_digest(given.strip().encode(), self._token):
            return True
        caller, now = request.client.host if request.client else "", self._clock()
        self._failures = [each for each in self._failures if each[1] > now - _WINDOW_S]
        own = sum(each[0] == caller for each in self._failures)
        if own >= _MAX_FAILURES_OF_ONE or len(self._failures) >= _MAX_FAILURES:
            raise TooManyAttempts
        self._failures.append((caller, now))
        log.warning("inspector refused", host=caller)  # no more: anybody could fill the log
        return False


def _cookie_of(request: Request) -> str:
    """Return our cookie: `request.cookies` takes seconds for a long one (CPython < 3.12.6)."""
    cookies, mark = request.headers.get("Cookie", "").split("; "), f"{_COOKIE}="
    return next((each.removeprefix(mark) for each in cookies if each.startswith(mark)), "")


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form of our own page; raise `UntrustedForm` for any other form.

    Browsers name the origin of every form that they post, and no page can change it.
    """
    _, _, origin = request.headers.get("Origin", "").partition("://")
    own = {request.headers.get("Host"), request.headers.get("X-Forwarded-Host")}
    if not origin or origin not in own:
        raise UntrustedForm
    body = await read_within(request.stream(), _MAX_FORM_BYTES)
    if body is None:
        raise UntrustedForm
    try:
        return dict(parse_qsl(body.decode(), max_num_fields=4))
    except ValueError:
        raise UntrustedForm from None


class LivePage:
    """The page and its form."""

    def __init__(self, reader: LiveReader, look: OperatorLook, sign_in: SignIn) -> None:
        self._reader = reader
        self._look = look
        self._sign_in = sign_in
        self._style = BASE_STYLE.read_text() + (WEB / "live.css").read_text()
        digest = b64encode(hashlib.sha256(self._style.encode()).digest()).decode()
        self._headers = {
            "Cache-Control": "no-store",
            "Content-Security-Policy": (
                f"default-src 'none'; style-src 'sha256-{digest}'; form-action 'self'; "
                "base-uri 'none'; frame-ancestors 'none'"
            ),
            "Referrer-Policy": "same-origin",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
        }
        filters = {
            "ago": _ago,
            "clock": lambda at: time.strftime("%H:%M:%S", time.gmtime(at)),
            "mb": lambda nbytes: f"{nbytes / 2**20:.1f}",
            "number": lambda value: f"{value:,.0f}".replace(",", " "),
        }
        self._templates = page_templates(WEB, filters)
        self._watched_until = 0.0

    async def answer(self, request: Request) -> Response:
        """Return the page, or the form that asks for the token."""
        try:
            return await (self._post if request.method == "POST" else self._show)(request)
        except TooManyAttempts:
            said = "Too many wrong tokens. Try again in five minutes."
            return self._form(said, HTTPStatus.TOO_MANY_REQUESTS)
        except StoreError:
            said = "Redis does not answer. Nothing can be shown, and nobody can sign out."
            return self._form(said, HTTPStatus.SERVICE_UNAVAILABLE)
        except UntrustedForm:
            said = "This form was refused: it is too long, or was not sent from this page."
            return self._form(said, HTTPStatus.FORBIDDEN)

    async def _show(self, request: Request) -> Response:
        if not await self._sign_in.admits(request):
            return self._form("", HTTPStatus.UNAUTHORIZED)
        if (named := request.query_params.get("look")) is None:
            return await self._state(request)
        allowed = await self._look.allowed()
        scopes = [scope for scope, _ in allowed if self._reader.name_of(scope) == named]
        seen = await self._look.read(scopes[0]) if scopes else None
        if seen is None:
            return RedirectResponse(PATH, HTTPStatus.SEE_OTHER, self._headers)
        until, messages = seen
        return self._page("looked_at.html", until=until, messages=messages, named=named)

    async def _post(self, request: Request) -> Response:
        form = await read_form(request)
        if "out" in form:
            answer = self._form("You are signed out.", HTTPStatus.OK)
            await self._sign_in.forget(request, answer)
            return answer
        if not self._sign_in.takes(request, form.get("token", "")):
            return self._form("This is not the token.", HTTPStatus.UNAUTHORIZED)
        log.info("inspector opened")
        opened = RedirectResponse(PATH, HTTPStatus.SEE_OTHER, self._headers)
        self._sign_in.remember(request, opened)
        return opened

    async def _state(self, request: Request) -> Response:
        await self._reader.reports.watch()
        now = asyncio.get_running_loop().time()
        if now > self._watched_until:
            await asyncio.sleep(_FIRST_REPORTS_S)
        self._watched_until = now + WATCHED_S
        return self._page(
            "live.html",
            state=await self._reader.read(),
            settings=self._reader.settings,
            name=self._reader.name_of,
            looks=await self._look.allowed(),
            refresh_s=0 if "pause" in request.query_params else _REFRESH_S,
        )

    def _form(self, said: str, status: HTTPStatus) -> Response:
        answer = self._page("sign_in.html", status, said=said)
        if status is HTTPStatus.UNAUTHORIZED:
            answer.headers["WWW-Authenticate"] = 'Bearer realm="inspector"'
        return answer

    def _page(
        self, template: str, status: HTTPStatus = HTTPStatus.OK, **values: object
    ) -> HTMLResponse:
        values |= {"path": PATH, "now": time.time()}
        values["style"] = Markup(self._style)  # noqa: S704 - our own file
        text = self._templates.get_template(template).render(values)
        return HTMLResponse(text, status, self._headers)


def _ago(seconds: float) -> str:
    """Return a duration in its largest unit, such as `12 s` or `3 h`."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
