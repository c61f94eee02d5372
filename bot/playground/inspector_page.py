"""The playground's page: a chat as people see it, and beside it how each answer came about.

The page is rendered on the server; its script fetches the same page again and shows what changed.
Only the open turn is rendered in full, and the keys of Redis if they are asked for.
All messages go through the local Telegram.
"""

import hashlib
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from itertools import pairwise
from pathlib import Path

import jinja2
from markupsafe import Markup, escape
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from bot.language.catalogue import Catalogue
from bot.playground.bot_api import BotApiServer
from bot.playground.bot_api.parameters import Parameters
from bot.playground.bot_api.values import MessageEntity
from bot.playground.forms import (
    REFUSALS,
    ChatForms,
    back_to,
    file_response,
    guard,
    read_form,
    refused,
    shown_message,
)
from bot.playground.inspector import Inspector, telegram_id_of
from bot.playground.offline_senses import OfflineServer
from bot.playground.scene import PageChat, Scene
from bot.playground.year.filling import YearFiller
from bot.runtime.web import BASE_STYLE
from memory.text.dates import dated

_WEB = Path(__file__).parent / "web"
_HEARTBEAT_S = 3
"""The page is refreshed this often, because learning goes on after the last message."""

_MIN_SHOWN, _SLIDE = 60, 20
"""Newest messages of a chat that are shown at first; the first one changes only every 20 messages,
because the script compares messages by their position."""

_MAX_NAME = 32
_TONES = 6


class InspectorPage:
    """The page; its address says which chat is shown and which turn is open."""

    def __init__(
        self,
        telegram: BotApiServer,
        scene: Scene,
        inspector: Inspector,
        note: str,
        sounds: OfflineServer | None = None,
    ) -> None:
        self.filler = YearFiller(telegram, scene, inspector)
        self._forms = ChatForms(telegram, scene, sounds)
        self._telegram = telegram
        self._scene = scene
        self._inspector = inspector
        self._note = note
        self._is_deaf = sounds is not None
        self._languages = Catalogue().languages
        loader = jinja2.FileSystemLoader(_WEB)
        self._templates = jinja2.Environment(
            loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True
        )
        self._templates.filters |= FILTERS
        self._templates.globals |= {"to_html": to_html, "telegram_id_of": telegram_id_of}

    def app(self) -> Starlette:
        """Return the web application."""
        return Starlette(
            routes=[
                Route("/", self._page),
                Route("/events", self._events),
                *self._forms.routes(),
                Route("/year", self._fill_year, methods=["POST"]),
                Route("/erase-year", self._erase_year, methods=["POST"]),
                Route("/people", self._add_person, methods=["POST"]),
                Route("/topics", self._add_topic, methods=["POST"]),
                Route("/languages", self._switch_language, methods=["POST"]),
                Route("/files/{file_id}", self._file),
                Route("/start-over", self._start_over, methods=["POST"]),
                Route("/base.css", self._base_style),
                Mount("/web", StaticFiles(directory=_WEB)),
            ],
            middleware=[Middleware(BaseHTTPMiddleware, dispatch=guard)],
            exception_handlers=dict.fromkeys(REFUSALS, refused),
        )

    async def _page(self, request: Request) -> Response:
        await self._inspector.restore()
        query = request.query_params
        here = self._scene.place(query.get("at", ""))
        turns = self._inspector.turns(here)
        newest = str(turns[0].number) if turns else ""
        messages = here.messages
        shown = messages if query.get("all") else messages[_first_shown(len(messages)) :]
        shows_stored = bool(query.get("stored"))
        template = self._templates.get_template("inspector.html")
        page = HTMLResponse(
            template.render(
                bot=self._telegram.bot,
                note=self._note,
                is_deaf=self._is_deaf,
                scene=self._scene,
                here=here,
                messages=shown,
                earlier=len(messages) - len(shown),
                filler=self.filler,
                menu=self._menu,
                tone=self._tone,
                turn_of=self._inspector.turn_of,
                turns=turns,
                open_turn=query.get("turn", newest),
                replied=shown_message(here, query.get("reply", "")),
                edited=shown_message(here, query.get("edit", "")),
                forwarded=shown_message(here, query.get("forward", "")),
                can_edit=self._forms.can_edit,
                targets=self._forms.targets(here),
                languages=self._languages,
                kept=await self._inspector.kept(here),
                shows_stored=shows_stored,
                stored=await self._inspector.stored(here) if shows_stored else [],
            )
        )
        # The script asks every few seconds: what it has already is not sent again.
        version = hashlib.blake2b(page.body, digest_size=16).hexdigest()
        page.headers["etag"] = version
        is_known = request.headers.get("if-none-match") == version
        return Response(status_code=HTTPStatus.NOT_MODIFIED) if is_known else page

    async def _events(self, request: Request) -> StreamingResponse:
        async def news() -> AsyncIterator[str]:
            while not await request.is_disconnected():
                seen = self._telegram.change_count
                yield f"data: {seen}\n\n"
                with suppress(TimeoutError):
                    await self._telegram.wait_for(partial(self._is_newer, seen), _HEARTBEAT_S)

        return StreamingResponse(news(), media_type="text/event-stream")

    async def _fill_year(self, _: Request) -> Response:
        return back_to(self.filler.start())

    async def _erase_year(self, _: Request) -> Response:
        await self.filler.erase()
        return back_to(self._scene.place(""))

    async def _add_person(self, request: Request) -> Response:
        form = await read_form(request)
        name = form.text("name").strip()[:_MAX_NAME]
        if not name:
            return back_to(self._scene.place(""))
        return back_to(self._scene.add_person(name, self._language(form)))

    async def _add_topic(self, request: Request) -> Response:
        name = (await read_form(request)).text("name").strip()[:_MAX_NAME]
        return back_to(self._scene.add_topic(name) if name else self._scene.place(""))

    async def _switch_language(self, request: Request) -> Response:
        form = await read_form(request)
        person = self._scene.person(form.text("person"))
        if person is not None:
            self._scene.switch_language(person, self._language(form))
        return back_to(self._scene.place(form.text("at")))

    async def _file(self, request: Request) -> Response:
        file = self._telegram.file(request.path_params["file_id"])
        if file is None:
            return Response("There is no such file.", HTTPStatus.NOT_FOUND)
        return file_response(file)

    async def _base_style(self, _: Request) -> Response:
        return FileResponse(BASE_STYLE)

    async def _start_over(self, _: Request) -> Response:
        await self.filler.stop()
        await self._inspector.start_over()
        return back_to(self._scene.place(""))

    def _language(self, form: Parameters) -> str:
        language = form.text("language")
        return language if language in self._languages else "en"

    def _is_newer(self, seen: int) -> bool:
        return self._telegram.change_count > seen

    def _tone(self, place: PageChat) -> int:
        """Return the color of a place's avatar."""
        return list(self._scene).index(place) % _TONES

    def _menu(self, place: PageChat) -> list[tuple[str, str]]:
        menu = self._telegram.menu(place.speaker, place.chat)
        return [(command.command, command.description) for command in menu]


def _first_shown(count: int) -> int:
    return max(0, count - _MIN_SHOWN) // _SLIDE * _SLIDE


_WORD = re.compile(r"\w+")
_TAGS = {
    "bold": "strong",
    "italic": "em",
    "underline": "u",
    "strikethrough": "s",
    "spoiler": "mark",
    "code": "code",
    "pre": "pre",
    "blockquote": "blockquote",
    "expandable_blockquote": "blockquote",
}


def to_html(text: str, entities: Sequence[MessageEntity]) -> Markup:
    """Return text and entities as escaped HTML; overlapping ones are closed and reopened."""
    units = text.encode("utf-16-le")
    shown = [entity for entity in entities if entity.type in _TAGS or entity.type == "text_link"]
    edges = sorted(
        {0, len(units) // 2}
        | {entity.offset for entity in shown}
        | {entity.offset + entity.length for entity in shown}
    )
    pieces = [
        _wrapped(units[2 * start : 2 * end].decode("utf-16-le"), start, end, shown)
        for start, end in pairwise(edges)
    ]
    return Markup("").join(pieces)


def _wrapped(piece: str, start: int, end: int, entities: Sequence[MessageEntity]) -> Markup:
    html = escape(piece)
    covering = [e for e in entities if e.offset <= start and end <= e.offset + e.length]
    for entity in reversed(covering):
        if entity.type == "text_link":
            html = Markup('<a href="{}" rel="noreferrer">{}</a>').format(entity.url, html)
        else:
            html = Markup("<{0}>{1}</{0}>").format(Markup(_TAGS[entity.type]), html)  # noqa: S704 - our own word
    return html


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%H:%M")


def _day(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%-d %B %Y")


def _dated(at: float) -> str:
    """Return the day and how long ago it was."""
    return dated(at, time.time(), datetime.now().astimezone().tzinfo or UTC)


def _initials(name: str) -> str:
    """Return the first letters of the first and the last word of a name."""
    words = _WORD.findall(name)
    return "".join(word[0] for word in dict.fromkeys(words[:1] + words[-1:])).upper()


def _short(at: float) -> str:
    """Return the clock of today, the day of another time."""
    return _clock(at) if _day(at) == _day(time.time()) else _day(at).rsplit(" ", 1)[0]


FILTERS: Mapping[str, Callable[..., str]] = {
    "clock": _clock,
    "day": _day,
    "dated": _dated,
    "initials": _initials,
    "short": _short,
}
