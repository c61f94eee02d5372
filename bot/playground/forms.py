"""The forms of the page: who may post them, and what a person does with them in a chat.

Everything goes through the local Telegram. A form that no longer fits the chat changes nothing.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from http import HTTPStatus
from urllib.parse import quote, urlencode

from starlette.middleware.base import RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from bot.playground.bot_api import BotApiServer, ChatMessage, LocalPerson
from bot.playground.bot_api.parameters import Parameters, read_parameters
from bot.playground.bot_api.people import kind_of
from bot.playground.bot_api.values import BadRequestError, StoredFile
from bot.playground.offline_senses import OfflineServer
from bot.playground.scene import PageChat, Scene, SceneFull
from memory.store.errors import StoreError

_MAX_BODY_BYTES = 21 * 2**20
"""The largest file that Telegram takes, with its text."""

_READABLE = ("application/json", "text/")
_SHOWN = ("image/jpeg", "image/png", "image/gif", "image/webp", "audio/")
"""Types of files that the page shows or plays; none of them can hold a script."""
_POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"

_MAX_TEXT = 4096
"""Characters of one message; a longer text is sent as several, as Telegram's apps do."""

_MAX_CAPTION = 1024
_MAX_FILES = 10
"""An album has at most this many."""
_MAX_DIGITS = 18


class ChatForms:
    """The forms of a chat; each answers with the address of a chat."""

    def __init__(
        self, telegram: BotApiServer, scene: Scene, sounds: OfflineServer | None = None
    ) -> None:
        self._telegram = telegram
        self._scene = scene
        self.sounds = sounds

    def routes(self) -> Sequence[Route]:
        """Return where the forms are posted."""
        return (
            Route("/say", self._say, methods=["POST"]),
            Route("/press", self._press, methods=["POST"]),
            Route("/stop", self._stop, methods=["POST"]),
        )

    def can_edit(self, place: PageChat, message: ChatMessage) -> bool:
        """Whether a person of the page wrote the message, and did not forward it."""
        return self._writer(place, message) is not None and not message.origin

    def targets(self, place: PageChat) -> list[PageChat]:
        """Return the chats into which a message of `place` may be forwarded, itself first."""
        others = [each for each in self._scene if each is not place]
        return [place, *(each for each in others if self._forwarder(place, each))]

    async def _say(self, request: Request) -> Response:
        form = await read_form(request)
        place = self._seated(form)
        command = form.text("command")
        text = (command or form.text("text")).strip()
        if form.text("edit") and not command:
            await self._edit(place, shown_message(place, form.text("edit")), text)
            return back_to(place)
        files = form.uploads("file")[:_MAX_FILES]
        if files and self.sounds and kind_of(files[0]) == "voice":
            self.sounds.keep(files[0].content, text)
            text = ""
        if (text or files) and form.text("mention") and not text.startswith("/"):
            text = f"@{self._telegram.bot.username} {text}".rstrip()
        if form.text("forward") and not command:
            target = self._scene.place(form.text("to"))
            forwarded = shown_message(place, form.text("forward"))
            return await self._forward(place, target, forwarded, text)
        replied = shown_message(place, form.text("reply"))
        speaker = place.speaker
        if files:
            await speaker.send_files(
                place.chat, files, caption=text[:_MAX_TEXT], reply_to=replied, topic=place.topic
            )
            text = ""
        for piece in _pieces(text):
            await speaker.say(place.chat, piece, reply_to=replied, topic=place.topic)
        return back_to(place)

    async def _edit(self, place: PageChat, message: ChatMessage | None, text: str) -> None:
        writer = self._writer(place, message) if message and self.can_edit(place, message) else None
        if message and writer and text:
            await writer.edit(message, text[: _MAX_CAPTION if message.media else _MAX_TEXT])

    async def _forward(
        self, place: PageChat, target: PageChat, message: ChatMessage | None, comment: str
    ) -> Response:
        """Forward a message behind the comment, which Telegram sends first."""
        person = self._forwarder(place, target)
        if message is None or person is None:
            return back_to(place)
        for piece in _pieces(comment):
            await person.say(target.chat, piece, topic=target.topic)
        await person.forward(target.chat, [message], topic=target.topic)
        return back_to(target)

    async def _press(self, request: Request) -> Response:
        form = await read_form(request)
        place = self._seated(form)
        number, _, button = form.text("button").partition(":")
        message = shown_message(place, number)
        if message is not None:
            with suppress(ValueError):  # it was answered meanwhile and has no buttons any more
                await place.speaker.press(message, button)
        return back_to(place)

    async def _stop(self, request: Request) -> Response:
        place = self._seated(await read_form(request))
        with suppress(ValueError):  # the answer is complete meanwhile
            await place.speaker.stop(place.chat)
        return back_to(place)

    def _seated(self, form: Parameters) -> PageChat:
        """Return the place of a form; in a group its `person` becomes the speaker."""
        place = self._scene.place(form.text("at"))
        speaker = self._scene.person(form.text("person"))
        if place.is_group and speaker is not None:
            place.speaker = speaker
        return place

    def _writer(self, place: PageChat, message: ChatMessage) -> LocalPerson | None:
        people = (place.speaker, *self._scene.people)
        wrote = message.sender.id if message.sender else 0
        return next((person for person in people if person.id == wrote), None)

    def _forwarder(self, place: PageChat, target: PageChat) -> LocalPerson | None:
        """Return who can forward from one chat to another: somebody who is in both."""
        person = place.speaker if target.is_group else target.speaker
        is_in_both = person.id in place.chat.members and person.id in target.chat.members
        return person if is_in_both else None


def shown_message(place: PageChat, number: str) -> ChatMessage | None:
    """Return a message of a place by its id as a form or an address has it."""
    if not number.isdecimal() or len(number) > _MAX_DIGITS:
        return None
    message = place.chat.message(int(number))
    return message if message in place.messages else None


def back_to(place: PageChat) -> RedirectResponse:
    """Return the way to a chat."""
    here = urlencode({"at": place.conversation.tag})
    return RedirectResponse(f"/?{here}", HTTPStatus.SEE_OTHER)


def _pieces(text: str) -> Iterator[str]:
    """Cut a long text into messages."""
    for start in range(0, len(text), _MAX_TEXT):
        yield text[start : start + _MAX_TEXT]


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
