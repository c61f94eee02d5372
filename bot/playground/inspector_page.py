"""The playground's page: a chat as people see it, and beside it how each answer came about.

The page is rendered on the server. After each change its script asks for it and shows what differs.
Only the open turn is rendered in full, and the keys of Redis if they are asked for.
"""

import asyncio
import hashlib
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

from babel import Locale
from markupsafe import Markup, escape
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from bot.language.catalogue import Catalogue
from bot.playground.forms import (
    REFUSALS,
    ChatForms,
    Form,
    back_to,
    file_response,
    guard,
    read_form,
    refused,
    shown_message,
)
from bot.playground.inspector import Inspector, telegram_id_of
from bot.playground.offline_memory import OfflineServer
from bot.playground.scene import BOT, BOT_USERNAME
from bot.playground.year import YearFiller
from bot.reply.parts import Entity, well_formed
from bot.runtime.pages import BASE_STYLE, page_templates
from memory.text.message_lines import dated
from memory.work.item import WorkItem

_WEB = Path(__file__).parent / "web"
_HOSTS = ["127.0.0.1", "localhost", "[::1]"]
_HEARTBEAT_S = 3  # the page is refreshed this often: learning goes on after the last message

_MIN_SHOWN, _SLIDE = 60, 20
"""Newest messages of a chat that are shown at first; the first one changes only every 20 messages,
because the script compares messages by their position."""

_MAX_NAME, _TONES = 32, 6
_KEY = re.compile(r"[!-~]{1,512}")


class InspectorPage:
    """The page; its address says which chat is shown and which turn is open."""

    def __init__(
        self, inspector: Inspector, note: str, sounds: OfflineServer | None = None
    ) -> None:
        self.filler = YearFiller(inspector)
        self._telegram, self._scene = inspector.telegram, inspector.scene
        self._forms = ChatForms(self._telegram, self._scene, sounds)
        self._inspector = inspector
        self._note = note
        self._takes_key, self.key = sounds is not None, ""
        self.has_key = asyncio.Event()
        """Set when somebody has pasted a `key`, with which the bot has to start again."""
        self._languages = {code: Locale(code).display_name for code in Catalogue().languages}
        self._is_stopping = False
        self._templates = page_templates(_WEB, FILTERS)
        functions = {"to_html": to_html, "telegram_id_of": telegram_id_of}
        functions["can_edit"] = self._forms.can_edit
        constant = {"bot": BOT, "username": BOT_USERNAME, "languages": self._languages}
        constant |= {"scene": self._scene, "telegram": self._telegram}
        constant |= {"filler": self.filler, "takes_key": self._takes_key}
        self._templates.globals |= constant | functions

    def answered_by(self, note: str) -> None:
        """Say that from now on a model answers, as `note` says."""
        self._note, self._forms.sounds = note, None

    async def stop(self) -> None:
        """Fill in no more of the year, and end the streams of events."""
        self._is_stopping = True
        self._telegram.note_change()
        await self.filler.stop()

    def app(self) -> Starlette:
        """Return the web application."""
        return Starlette(
            routes=[
                Route("/", self._page),
                Route("/events", self._events),
                Route("/say", self._forms.say, methods=["POST"]),
                Route("/press", self._forms.press, methods=["POST"]),
                Route("/stop", self._forms.stop, methods=["POST"]),
                Route("/year", self._fill_year, methods=["POST"]),
                Route("/erase-year", self._erase_year, methods=["POST"]),
                Route("/people", self._add_person, methods=["POST"]),
                Route("/topics", self._add_topic, methods=["POST"]),
                Route("/key", self._paste_key, methods=["POST"]),
                Route("/languages", self._switch_language, methods=["POST"]),
                Route("/files/{file_id}", self._file),
                Route("/start-over", self._start_over, methods=["POST"]),
                Route("/base.css", lambda _: FileResponse(BASE_STYLE)),
                Mount("/web", StaticFiles(directory=_WEB)),
            ],
            middleware=[
                # No other web page can reach this one through DNS rebinding.
                Middleware(TrustedHostMiddleware, allowed_hosts=_HOSTS),
                Middleware(BaseHTTPMiddleware, dispatch=guard),
            ],
            exception_handlers=dict.fromkeys(REFUSALS, refused),
        )

    async def _page(self, request: Request) -> Response:
        await self._inspector.restore()
        query = request.query_params
        here = self._scene.place(query.get("at", ""))
        turns = await self._inspector.turns(here)
        newest = str(turns[0][1].number) if turns else ""
        messages = here.messages
        first = 0 if query.get("all") else max(0, len(messages) - _MIN_SHOWN) // _SLIDE * _SLIDE
        replied = shown_message(here, query.get("reply", ""))
        if replied is None and here.asking and query.get("reply") != f"-{here.asking.id}":
            replied = here.asking
        page = HTMLResponse(
            well_formed(
                self._templates.get_template("inspector.html").render(
                    note=self._note,
                    is_offline=self._forms.sounds is not None,
                    here=here,
                    messages=messages[first:],
                    earlier=first,
                    tone=list(self._scene).index(here) % _TONES,
                    turn_of={
                        id_: each for _, each in turns[::-1] for id_ in each.asked.message_ids
                    },
                    turns=turns,
                    open_turn=query.get("turn", newest),
                    replied=replied,
                    edited=shown_message(here, query.get("edit", "")),
                    kept=await self._inspector.kept(here),
                    stored=await self._inspector.stored(here) if query.get("stored") else None,
                )
            )
        )
        page.headers["etag"] = hashlib.blake2b(page.body, digest_size=16).hexdigest()
        is_known = page.headers["etag"] == request.headers.get("if-none-match")
        return Response(status_code=HTTPStatus.NOT_MODIFIED) if is_known else page

    async def _events(self, request: Request) -> StreamingResponse:
        async def news() -> AsyncIterator[str]:
            while not (self._is_stopping or await request.is_disconnected()):
                seen = self._telegram.change_count
                yield f"data: {seen}\n\n"
                await self._telegram.until_changed(seen, _HEARTBEAT_S)

        return StreamingResponse(news(), media_type="text/event-stream")

    async def _fill_year(self, _: Request) -> Response:
        return back_to(self.filler.start())

    async def _erase_year(self, _: Request) -> Response:
        await self.filler.stop()
        await self._inspector.remove_guest()
        return back_to(self._scene.place(""))

    async def _add_person(self, request: Request) -> Response:
        form = await read_form(request)
        name = form.text("name").strip()[:_MAX_NAME]
        added = self._scene.add_person(name, self._language(form)) if name else None
        return back_to(added or self._scene.place(""))

    async def _add_topic(self, request: Request) -> Response:
        name = (await read_form(request)).text("name").strip()[:_MAX_NAME]
        return back_to(self._scene.add_topic(name) if name else self._scene.place(""))

    async def _switch_language(self, request: Request) -> Response:
        form = await read_form(request)
        person = self._scene.person(form.text("person"))
        if person is not None:
            self._scene.switch_language(person, self._language(form))
        return back_to(self._scene.place(form.text("at")))

    async def _paste_key(self, request: Request) -> Response:
        form = await read_form(request)
        key = form.text("key").strip()
        if self._takes_key and _KEY.fullmatch(key):
            self.key, self._inspector.memory = key, None
            self._inspector.serving.clear()
            self.has_key.set()
        return back_to(self._scene.place(form.text("at")))

    async def _file(self, request: Request) -> Response:
        file = self._telegram.files.get(request.path_params["file_id"])
        missing = Response("There is no such file.", HTTPStatus.NOT_FOUND)
        return file_response(file) if file else missing

    async def _start_over(self, _: Request) -> Response:
        await self.filler.stop()
        await self._inspector.start_over()
        return back_to(self._scene.place(""))

    def _language(self, form: Form) -> str:
        language = form.text("language")
        return language if language in self._languages else "en"


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


def to_html(text: str, entities: Sequence[Entity]) -> Markup:
    """Return text and entities as escaped HTML; overlapping ones are closed and reopened."""
    units = text.encode("utf-16-le")
    shown = [entity for entity in entities if entity.type in _TAGS or entity.type == "text_link"]
    ends = {place for entity in shown for place in (entity.offset, entity.end)}
    edges = sorted({0, len(units) // 2} | ends)
    pieces = []
    for start, end in pairwise(edges):
        html = escape(units[2 * start : 2 * end].decode("utf-16-le"))
        covering = [e for e in shown if e.offset <= start and end <= e.end]
        for entity in reversed(covering):
            if entity.type == "text_link":
                html = Markup('<a href="{}" rel="noreferrer">{}</a>').format(entity.url, html)
            else:
                html = Markup("<{0}>{1}</{0}>").format(Markup(_TAGS[entity.type]), html)  # noqa: S704 - our own word
            if entity.type == "pre":
                html += Markup('<button type="button" class="copy">Copy</button>')
        pieces.append(html)
    return Markup("").join(pieces)


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%H:%M")


def _day(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%-d %B %Y")


def _dated(at: float) -> str:
    return dated(at, time.time(), datetime.now().astimezone().tzinfo or UTC)


def _local_time(item: WorkItem) -> str:
    zone = ZoneInfo(item.zone) if item.zone else UTC
    return f"{datetime.fromtimestamp(item.due, zone):%A, %-d %B %Y, %H:%M}"


def _initials(name: str) -> str:
    words = _WORD.findall(name)
    return "".join(word[0] for word in dict.fromkeys(words[:1] + words[-1:])).upper()


def _short(at: float) -> str:
    return _clock(at) if _day(at) == _day(time.time()) else _day(at).rsplit(" ", 1)[0]


FILTERS: Mapping[str, Callable[..., str]] = {
    each.__name__[1:]: each for each in (_clock, _day, _dated, _initials, _local_time, _short)
}
