"""The forms of the page: who may post them, and what a person does with them in a chat.

A form that no longer fits the chat changes nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import quote, urlencode

from starlette.datastructures import UploadFile
from starlette.middleware.base import RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from bot.playground.offline_memory import OfflineServer
from bot.playground.page_telegram import PageTelegram
from bot.playground.scene import (
    BOT_USERNAME,
    PageChat,
    PageFile,
    PageMessage,
    Scene,
    SceneFull,
    uploaded,
)
from bot.reply.parts import well_formed
from memory.store.errors import StoreError

_MAX_BODY_BYTES = 21 * 2**20  # the largest file that Telegram takes, with its text

_SHOWN = ("image/jpeg", "image/png", "image/gif", "image/webp", "audio/")
"""Types of files that the page shows or plays; none of them can hold a script."""
_POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"

_MAX_TEXT = 4096  # of one message; a longer text is sent as several, as Telegram's apps do

_MAX_TYPED = 100_000  # characters of the text in one form; the page's script refuses more, too

_MAX_CAPTION = 1024
_MAX_FILES = 10  # an album has at most this many
_MAX_DIGITS = 18
_MAX_PARTS = 100


class ChatForms:
    """The forms of a chat; each answers with the address of a chat."""

    def __init__(
        self, telegram: PageTelegram, scene: Scene, sounds: OfflineServer | None = None
    ) -> None:
        self._telegram = telegram
        self._scene = scene
        self.sounds = sounds

    def can_edit(self, place: PageChat, message: PageMessage) -> bool:
        """Whether a person of the page wrote the message."""
        return message.sender in (place.speaker, *self._scene.people)

    async def say(self, request: Request) -> Response:
        """Send a text and files as the speaker of a chat, or change a message."""
        form = await read_form(request)
        place = self._seated(form)
        command = form.text("command")
        text = (command or form.text("text")).strip()
        if len(text) > _MAX_TYPED:
            raise TooLarge
        if form.text("edit") and not command:
            message = shown_message(place, form.text("edit"))
            if message and text and self.can_edit(place, message):
                text = text[: _MAX_CAPTION if message.file else _MAX_TEXT]
                self._telegram.edit_message(place, message, text)
            return back_to(place)
        files = form.files[:_MAX_FILES]
        if files and self.sounds and files[0].kind == "voice":
            self.sounds.keep(files[0].content, text)
            text = ""
        if (text or files) and form.text("mention") and place.is_group:
            text = _addressed(text)
        replied = shown_message(place, form.text("reply"))
        if files:
            self._telegram.send_files(place, files, text[:_MAX_CAPTION], replied)
            text = text[_MAX_CAPTION:]
        for start in range(0, len(text), _MAX_TEXT):
            piece = text[start : start + _MAX_TEXT]
            self._telegram.say(place, place.speaker, piece, reply_to=replied)
        return back_to(place)

    async def press(self, request: Request) -> Response:
        """Press a button of a message."""
        form = await read_form(request)
        place = self._seated(form)
        number, _, button = form.text("button").partition(":")
        message = shown_message(place, number)
        if message is not None:
            self._telegram.press(place, message, button)
        return back_to(place)

    async def stop(self, request: Request) -> Response:
        """Press Stop under what the bot is writing."""
        place = self._seated(await read_form(request))
        self._telegram.stop(place)
        return back_to(place)

    def _seated(self, form: "Form") -> PageChat:
        """Return the place of a form; in a group its `person` becomes the speaker."""
        place = self._scene.place(form.text("at"))
        speaker = self._scene.person(form.text("person"))
        if place.is_group and speaker is not None:
            place.speaker = speaker
        return place


def shown_message(place: PageChat, number: str) -> PageMessage | None:
    """Return a message of a place by its id as a form or an address has it."""
    if not number.isdecimal() or len(number) > _MAX_DIGITS:
        return None
    return place.by_id.get(int(number))


def back_to(place: PageChat) -> RedirectResponse:
    """Return the way to a chat."""
    here = urlencode({"at": place.conversation.tag})
    return RedirectResponse(f"/?{here}", HTTPStatus.SEE_OTHER)


def _addressed(text: str) -> str:
    """Return the text with a mention; a command has it behind its name, as in Telegram's menu."""
    first, space, rest = text.partition(" ")
    if not text.startswith("/"):
        return f"@{BOT_USERNAME} {text}".rstrip()
    return text if "@" in first else f"{first}@{BOT_USERNAME}{space}{rest}"


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
    """Raised when a form is larger than the largest file with its text, or its text is too long."""


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a form, and the files that were chosen."""

    fields: Mapping[str, str]
    files: Sequence[PageFile]

    def text(self, name: str) -> str:
        """Return a field, "" if it is absent."""
        return self.fields.get(name, "")


async def read_form(request: Request) -> Form:
    """Return the fields and files of a form; raise `TooLarge`, or `HTTPException` for nonsense."""
    nbytes = request.headers.get("content-length", "")
    if not nbytes.isdecimal() or int(nbytes) > _MAX_BODY_BYTES:
        raise TooLarge
    async with request.form(max_files=_MAX_PARTS, max_fields=_MAX_PARTS) as sent:
        fields = {name: well_formed(said) for name, said in sent.items() if isinstance(said, str)}
        files = [
            uploaded(await each.read(), well_formed(each.filename), each.content_type or "")
            for each in sent.getlist("file")
            if isinstance(each, UploadFile) and each.filename
        ]
        return Form(fields, files)


def file_response(file: PageFile) -> Response:
    """Return a file to open: text as plain text, pictures and sounds; or else to download."""
    kind, how = "application/octet-stream", "attachment"
    if file.mime_type.startswith(("application/json", "text/")):
        kind, how = "text/plain; charset=utf-8", "inline"
    elif file.mime_type.startswith(_SHOWN):
        kind, how = file.mime_type, "inline"
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
    TooLarge: (
        "Telegram takes files up to 20 MB. Attach a text of over 100,000 characters as a file.",
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    ),
    StoreError: ("The playground's Valkey does not answer.", HTTPStatus.SERVICE_UNAVAILABLE),
}
