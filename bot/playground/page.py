"""The playground's chat page: a person's side of the local Telegram, rendered on the server.

Everything said here goes through the Bot API server; the page knows nothing of the bot.
"""

from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import datetime
from functools import partial
from http import HTTPStatus
from pathlib import Path
from urllib.parse import parse_qsl

import jinja2
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from bot.playground.bot_api import BotApiServer
from bot.playground.bot_api.chats import Chat
from bot.playground.bot_api.people import Person
from bot.playground.entities import to_html

_WEB = Path(__file__).parent / "web"
_HEARTBEAT_S = 15
_MAX_TEXT = 4096
_POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"


class ChatPage:
    """One person's private chat with the bot."""

    def __init__(self, telegram: BotApiServer, person: Person, note: str) -> None:
        self._telegram = telegram
        self._person = person
        self._chat: Chat = telegram.private_chat(person)
        self._note = note
        loader = jinja2.FileSystemLoader(_WEB)
        self._templates = jinja2.Environment(loader=loader, autoescape=True)
        self._templates.filters["clock"] = _clock
        self._templates.globals["to_html"] = to_html

    def app(self) -> Starlette:
        """Return the web application."""
        return Starlette(
            routes=[
                Route("/", self._page),
                Route("/messages", self._messages),
                Route("/events", self._events),
                Route("/say", self._say, methods=["POST"]),
                Route("/press", self._press, methods=["POST"]),
                Mount("/web", StaticFiles(directory=_WEB)),
            ],
            middleware=[Middleware(BaseHTTPMiddleware, dispatch=_guard)],
        )

    async def _page(self, _: Request) -> HTMLResponse:
        return self._render("chat.html", note=self._note, commands=self._menu())

    async def _messages(self, _: Request) -> HTMLResponse:
        return self._render("messages.html")

    async def _events(self, request: Request) -> StreamingResponse:
        async def news() -> AsyncIterator[str]:
            while not await request.is_disconnected():
                seen = self._telegram.change_count
                yield f"data: {seen}\n\n"
                with suppress(TimeoutError):
                    await self._telegram.wait_for(partial(self._is_newer, seen), _HEARTBEAT_S)

        return StreamingResponse(news(), media_type="text/event-stream")

    async def _say(self, request: Request) -> Response:
        text = (await _form(request)).get("text", "").strip()[:_MAX_TEXT]
        if text:
            await self._person.say(self._chat, text)
        return RedirectResponse("/", HTTPStatus.SEE_OTHER)

    async def _press(self, request: Request) -> Response:
        form = await _form(request)
        message = self._chat.message(int(form.get("message", 0)))
        if message is not None:
            await self._person.press(message, form.get("button", ""))
        return RedirectResponse("/", HTTPStatus.SEE_OTHER)

    def _is_newer(self, seen: int) -> bool:
        return self._telegram.change_count > seen

    def _menu(self) -> list[tuple[str, str]]:
        menu = self._telegram.menu(self._person, self._chat)
        return [(command.command, command.description) for command in menu]

    def _render(self, template: str, **values: object) -> HTMLResponse:
        page = self._templates.get_template(template)
        return HTMLResponse(
            page.render(
                me=self._person.user,
                bot=self._telegram.bot,
                messages=self._chat.messages,
                is_typing=self._chat.bot_is_typing,
                **values,
            )
        )


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


def _clock(sent_at: int) -> str:
    return datetime.fromtimestamp(sent_at).astimezone().strftime("%H:%M")
