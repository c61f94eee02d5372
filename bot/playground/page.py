"""The playground's page: a chat as people see it, beside what the bot made of it.

Rendered on the server; the script only fetches the same page again. Everything said here goes
through the Bot API server.
"""

from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import datetime
from functools import partial
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote, urlencode

import jinja2
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from bot.language.catalogue import Catalogue
from bot.playground.bot_api import BotApiServer, Message
from bot.playground.bot_api.errors import BadRequestError
from bot.playground.bot_api.parameters import Parameters, read_parameters
from bot.playground.bot_api.values import MediaKind, Upload
from bot.playground.entities import to_html
from bot.playground.inspector import Inspector
from bot.playground.scene import Place, Scene, SceneFull
from memory.store.errors import StoreError

_WEB = Path(__file__).parent / "web"
_HEARTBEAT_S = 3
"""Learning goes on after the last message; the panel shows it this soon."""

_MAX_TEXT = 4096
"""Characters of one message; Telegram's apps split a longer text."""

_MAX_FILE_BYTES = 20 * 2**20
_MAX_BODY_BYTES = _MAX_FILE_BYTES + 2**20
_MAX_NAME = 32
_READABLE = ("application/json", "text/")
_POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"


class InspectorPage:
    """The page; which place is at hand, and which turn is open, stands in its address."""

    def __init__(
        self, telegram: BotApiServer, scene: Scene, inspector: Inspector, note: str
    ) -> None:
        self._telegram = telegram
        self._scene = scene
        self._inspector = inspector
        self._note = note
        self._languages = Catalogue().languages
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
                Route("/languages", self._switch_language, methods=["POST"]),
                Route("/files/{file_id}", self._file),
                Route("/start-over", self._start_over, methods=["POST"]),
                Mount("/web", StaticFiles(directory=_WEB)),
            ],
            middleware=[Middleware(BaseHTTPMiddleware, dispatch=_guard)],
            exception_handlers={
                SceneFull: _full,
                StoreError: _no_store,
                _TooLarge: _too_large,
                BadRequestError: _unreadable,
            },
        )

    async def _page(self, request: Request) -> HTMLResponse:
        await self._inspector.restore()
        here = self._scene.place(request.query_params.get("at", ""))
        turns = self._inspector.turns(here)
        newest = str(turns[0].number) if turns else ""
        page = self._templates.get_template("inspector.html")
        return HTMLResponse(
            page.render(
                bot=self._telegram.bot,
                note=self._note,
                scene=self._scene,
                here=here,
                menu=self._menu,
                turn_of=self._inspector.turn_of,
                turns=turns,
                open_turn=request.query_params.get("turn", newest),
                replied=_message(here, request.query_params.get("reply", "")),
                languages=self._languages,
                stored=await self._inspector.stored(here),
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
        text = (form.text("command") or form.text("text")).strip()
        if text and form.text("mention") and not text.startswith("/"):
            text = f"@{self._telegram.bot.username} {text}"
        replied = _message(place, form.text("reply"))
        speaker, file = place.speaker, form.upload("file")
        if file and file.name:
            await speaker.send(
                place.chat,
                _kind_of(file),
                caption=text[:_MAX_TEXT],
                file=file,
                reply_to=replied,
                topic=place.topic,
            )
            text = ""
        for start in range(0, len(text), _MAX_TEXT):
            piece = text[start : start + _MAX_TEXT]
            await speaker.say(place.chat, piece, reply_to=replied, topic=place.topic)
        return _back(place)

    async def _press(self, request: Request) -> Response:
        form = await _form(request)
        place = self._seated(form)
        number, _, button = form.text("button").partition(":")
        message = _message(place, number)
        if message is not None:
            with suppress(ValueError):  # it was answered meanwhile and has no buttons any more
                await place.speaker.press(message, button)
        return _back(place)

    async def _add_person(self, request: Request) -> Response:
        form = await _form(request)
        name = form.text("name").strip()[:_MAX_NAME]
        if not name:
            return _back(self._scene.place(""))
        return _back(self._scene.add_person(name, self._language(form)))

    async def _add_topic(self, request: Request) -> Response:
        name = (await _form(request)).text("name").strip()[:_MAX_NAME]
        return _back(self._scene.add_topic(name) if name else self._scene.place(""))

    async def _switch_language(self, request: Request) -> Response:
        form = await _form(request)
        person = self._scene.person(form.text("person"))
        if person is not None:
            self._scene.switch_language(person, self._language(form))
        return _back(self._scene.place(form.text("at")))

    async def _file(self, request: Request) -> Response:
        """Hand out a file of a chat; what people can read opens in the browser as plain text."""
        file = self._telegram.file(request.path_params["file_id"])
        if file is None:
            return Response("There is no such file.", HTTPStatus.NOT_FOUND)
        is_text = file.mime_type.startswith(_READABLE)
        how = "inline" if is_text else "attachment"
        headers = {
            "Content-Disposition": f"{how}; filename*=UTF-8''{quote(file.name or 'file')}",
            "X-Content-Type-Options": "nosniff",
        }
        kind = "text/plain; charset=utf-8" if is_text else "application/octet-stream"
        return Response(file.content, headers=headers, media_type=kind)

    async def _start_over(self, _: Request) -> Response:
        await self._inspector.start_over()
        return _back(self._scene.place(""))

    def _language(self, form: Parameters) -> str:
        language = form.text("language")
        return language if language in self._languages else "en"

    def _seated(self, form: Parameters) -> Place:
        """Return where a form was filled in; in a group its `person` becomes the speaker."""
        place = self._scene.place(form.text("at"))
        speaker = self._scene.person(form.text("person"))
        if place.is_group and speaker is not None:
            place.speaker = speaker
        return place

    def _is_newer(self, seen: int) -> bool:
        return self._telegram.change_count > seen

    def _menu(self, place: Place) -> list[tuple[str, str]]:
        menu = self._telegram.menu(place.speaker, place.chat)
        return [(command.command, command.description) for command in menu]


async def _guard(request: Request, call_next: RequestResponseEndpoint) -> Response:
    """Refuse forms that are not this page's own, and keep it from loading anything from outside.

    Browsers name the origin of every form that they post; a request that names none is refused too.
    """
    origin, own = request.headers.get("origin"), f"http://{request.headers.get('host')}"
    if origin not in (None, own) or (origin is None and request.method != "GET"):
        return Response(status_code=HTTPStatus.FORBIDDEN)
    response = await call_next(request)
    response.headers["Content-Security-Policy"] = _POLICY
    response.headers["Cache-Control"] = "no-store"
    return response


class _TooLarge(Exception):  # noqa: N818 - says when
    """Raised when a form is larger than the largest file with its text."""


async def _form(request: Request) -> Parameters:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > _MAX_BODY_BYTES:
            raise _TooLarge
    return read_parameters("", request.headers.get("content-type", ""), bytes(body))


def _kind_of(file: Upload) -> MediaKind:
    """Return how Telegram's apps would send a file of this type."""
    kinds: dict[str, MediaKind] = {"image": "photo", "audio": "voice"}
    return kinds.get(file.mime_type.partition("/")[0], "document")


def _message(place: Place, number: str) -> Message | None:
    return place.chat.message(int(number)) if number.isdecimal() else None


def _back(place: Place) -> RedirectResponse:
    here = urlencode({"at": place.conversation.tag})
    return RedirectResponse(f"/?{here}", HTTPStatus.SEE_OTHER)


async def _full(_: Request, __: Exception) -> Response:
    return Response("There is no room for more on this page.", HTTPStatus.CONFLICT)


async def _too_large(_: Request, __: Exception) -> Response:
    return Response("Telegram takes files up to 20 MB.", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)


async def _unreadable(_: Request, __: Exception) -> Response:
    return Response("This form cannot be read.", HTTPStatus.BAD_REQUEST)


async def _no_store(_: Request, __: Exception) -> Response:
    return Response("The playground's Valkey does not answer.", HTTPStatus.SERVICE_UNAVAILABLE)


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%H:%M")


def _day(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%-d %B %Y")
