"""The playground's page: people's side of the local Telegram beside what the bot did, on one sheet.

Rendered on the server; the script only fetches the same page again. Everything said here goes
through the Bot API server.
"""

from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import datetime
from functools import partial
from http import HTTPStatus
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import jinja2
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from bot.playground.bench import Bench
from bot.playground.bot_api import BotApiServer
from bot.playground.entities import to_html
from bot.playground.scene import Place, Scene, SceneFull
from memory.store_errors import StoreError

_WEB = Path(__file__).parent / "web"
_HEARTBEAT_S = 3
"""Learning goes on after the last message; the panel shows it this soon."""

_MAX_TEXT = 4096
_MAX_NAME = 32
_POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"


class BenchPage:
    """The page; which place is at hand, and which turn is open, stands in its address."""

    def __init__(self, telegram: BotApiServer, scene: Scene, bench: Bench, note: str) -> None:
        self._telegram = telegram
        self._scene = scene
        self._bench = bench
        self._note = note
        loader = jinja2.FileSystemLoader(_WEB)
        self._templates = jinja2.Environment(
            loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True
        )
        self._templates.filters |= {"clock": _clock, "day": _day}
        self._templates.globals["to_html"] = to_html

    def app(self) -> Starlette:
        """Return the web application."""
        return Starlette(
            routes=[
                Route("/", self._page),
                Route("/events", self._events),
                Route("/say", self._say, methods=["POST"]),
                Route("/press", self._press, methods=["POST"]),
                Route("/people", self._add_person, methods=["POST"]),
                Route("/topics", self._add_topic, methods=["POST"]),
                Route("/start-over", self._start_over, methods=["POST"]),
                Mount("/web", StaticFiles(directory=_WEB)),
            ],
            middleware=[Middleware(BaseHTTPMiddleware, dispatch=_guard)],
            exception_handlers={SceneFull: _full, StoreError: _no_store},
        )

    async def _page(self, request: Request) -> HTMLResponse:
        here = self._scene.place(request.query_params.get("at", ""))
        turns = self._bench.turns(here)
        newest = str(turns[0].number) if turns else ""
        page = self._templates.get_template("bench.html")
        return HTMLResponse(
            page.render(
                bot=self._telegram.bot,
                note=self._note,
                scene=self._scene,
                here=here,
                menu=self._menu,
                turn_of=self._bench.turn_of,
                turns=turns,
                open_turn=request.query_params.get("turn", newest),
                stored=await self._bench.stored(here),
            )
        )

    async def _events(self, request: Request) -> StreamingResponse:
        async def news() -> AsyncIterator[str]:
            while not await request.is_disconnected():
                seen = self._telegram.change_count
                yield f"data: {seen}\n\n"
                with suppress(TimeoutError):
                    await self._telegram.wait_for(partial(self._is_newer, seen), _HEARTBEAT_S)

        return StreamingResponse(news(), media_type="text/event-stream")

    async def _say(self, request: Request) -> Response:
        form = await _form(request)
        place = self._seated(form)
        text = (form.get("command") or form.get("text", "")).strip()
        if text and form.get("mention") and not text.startswith("/"):
            text = f"@{self._telegram.bot.username} {text}"
        if text:
            await place.speaker.say(place.chat, text[:_MAX_TEXT], topic=place.topic)
        return _back(place)

    async def _press(self, request: Request) -> Response:
        form = await _form(request)
        place = self._seated(form)
        number, _, button = form.get("button", "").partition(":")
        message = place.chat.message(int(number)) if number.isdecimal() else None
        if message is not None:
            with suppress(ValueError):  # it was answered meanwhile and has no buttons any more
                await place.speaker.press(message, button)
        return _back(place)

    async def _add_person(self, request: Request) -> Response:
        name = (await _form(request)).get("name", "").strip()[:_MAX_NAME]
        return _back(self._scene.add_person(name) if name else self._scene.place(""))

    async def _add_topic(self, request: Request) -> Response:
        name = (await _form(request)).get("name", "").strip()[:_MAX_NAME]
        return _back(self._scene.add_topic(name) if name else self._scene.place(""))

    async def _start_over(self, _: Request) -> Response:
        await self._bench.start_over()
        return _back(self._scene.place(""))

    def _seated(self, form: dict[str, str]) -> Place:
        """Return where a form was filled in, with whoever did it as its speaker."""
        place = self._scene.place(form.get("at", ""))
        speaker = self._scene.person(form.get("person", ""))
        if place.is_group and speaker is not None:
            place.speaker = speaker
        return place

    def _is_newer(self, seen: int) -> bool:
        return self._telegram.change_count > seen

    def _menu(self, place: Place) -> list[tuple[str, str]]:
        menu = self._telegram.menu(place.speaker, place.chat)
        return [(command.command, command.description) for command in menu]


async def _guard(request: Request, call_next: RequestResponseEndpoint) -> Response:
    """Refuse what another site's page sends here, and keep ours from loading anything foreign."""
    origin = request.headers.get("origin")
    if origin is not None and origin != f"http://{request.headers.get('host')}":
        return Response(status_code=HTTPStatus.FORBIDDEN)
    response = await call_next(request)
    response.headers["Content-Security-Policy"] = _POLICY
    response.headers["Cache-Control"] = "no-store"
    return response


async def _form(request: Request) -> dict[str, str]:
    return dict(parse_qsl((await request.body()).decode()))


def _back(place: Place) -> RedirectResponse:
    here = urlencode({"at": place.conversation.tag})
    return RedirectResponse(f"/?{here}", HTTPStatus.SEE_OTHER)


async def _full(_: Request, __: Exception) -> Response:
    return Response("There is no room for more on this page.", HTTPStatus.CONFLICT)


async def _no_store(_: Request, __: Exception) -> Response:
    return Response("The playground's Valkey does not answer.", HTTPStatus.SERVICE_UNAVAILABLE)


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%H:%M")


def _day(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M")
