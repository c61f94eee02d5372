"""The step that fetches photos for the model. No byte of them is stored.

Only the header of a file is read here, to learn its format and its size. A picture with more pixels
than models look at is made smaller, in an isolated process.
"""

import asyncio
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import structlog
from PIL import Image

from bot.agent.picture_header import header_of
from bot.commands.sentences import Sentences
from bot.documents import isolated
from bot.documents.isolated import ParserFailed, parse
from bot.telegram.chat import Chat
from bot.telegram.edits import LATE_PHOTO_MARK, PHOTO_MARK
from bot.telegram.errors import Refused
from bot.telegram.message_content import MAX_PIXELS
from bot.telegram.updates import IncomingMessage
from bot.turn.at_work import AtWork
from bot.turn.outbox import Outbox
from bot.turn.request import Request, with_words
from memory.message import ImageDetail, Picture
from memory.scopes.history import ChatHistory
from memory.text.tokens import TokenCounter

log = structlog.get_logger(__name__)

_MAX_BYTES = 20 * 2**20
"""Telegram lets bots fetch files up to this size."""
_MAX_PICTURES = 10
"""An album has at most this many pictures."""
_FORMATS = ("JPEG", "PNG", "WEBP", "GIF")
"""What OpenAI takes."""
_MAX_STATED_PIXELS = 50_000_000
"""Of a file that is made smaller. A JPEG of this size fits into the process, a PNG up to 24 million
pixels. A larger one is refused there, because its memory is bounded."""
_SCALING = Path(isolated.__file__).with_name("small_picture.py")
_SCALING_MB = 320
_SCALING_CPU_S = 8
_SCALING_S = 20


class NotSeen(Exception):
    """Raised when a file cannot be shown to a model; the text is the name of a sentence."""


class PictureStep:
    """Fetches the photos of a turn, which the model then sees with `detail`; None: it sees none."""

    def __init__(
        self,
        chat: Chat,
        tokens: TokenCounter,
        at_work: AtWork,
        sentences: Sentences,
        detail: ImageDetail | None,
    ) -> None:
        self._chat = chat
        self._tokens = tokens
        self._at_work = at_work
        self._sentences = sentences
        self._detail = detail
        self._scaling = asyncio.Semaphore(1)

    async def answer(self, request: Request, history: ChatHistory) -> Outbox | Request | None:
        """Return the request with its pictures, or a notice if there is nothing to answer.

        A picture whose album was answered before says so, also in the history. Raise
        `TelegramError` if Telegram cannot be reached.
        """
        photos = [each for each in request.updates if each.kind == "photo"][:_MAX_PICTURES]
        if not photos:
            return None
        try:
            async with self._at_work.shown(request.to):
                pictures = tuple([await self._picture(photo) for photo in photos])
        except NotSeen as refusal:
            log.info("photo not seen", reason=str(refusal))
            if request.message.text:
                return None
            return Outbox(request.to, self._sentences.say(request.language, f"pictures.{refusal}"))
        answered = {each.album for each in history.messages if each.album}
        request.run.seen = tuple(
            (photo.message_id, LATE_PHOTO_MARK if photo.album in answered else PHOTO_MARK)
            for photo in photos
        )
        return replace(with_words(request, request.run.seen, self._tokens), pictures=pictures)

    async def _picture(self, photo: IncomingMessage) -> Picture:
        """Return a photo; raise `NotSeen` or `TelegramError`."""
        if self._detail is None:
            raise NotSeen("blind")
        if photo.file is None:
            raise NotSeen("gone")
        if photo.file.nbytes > _MAX_BYTES:
            raise NotSeen("too_big")
        try:
            content = await self._chat.download(photo.file.file_id, _MAX_BYTES)
        except Refused as refusal:
            raise NotSeen("too_big" if refusal.reason == "too_big" else "gone") from refusal
        picture = picture_of(content)
        if picture.width * picture.height > MAX_PIXELS:
            async with self._scaling:
                picture = await made_smaller(content)
        return replace(picture, message_id=photo.message_id, detail=self._detail)


def picture_of(content: bytes) -> Picture:
    """Return a picture with the size that its header states; raise `NotSeen`.

    A small file may state a huge size. It is refused, because it might fill the memory of whoever
    decodes it.
    """
    try:
        header = header_of(content, _FORMATS)
    except Image.DecompressionBombError as error:
        raise NotSeen("too_big") from error
    if header is None or header[0] not in Image.MIME:
        raise NotSeen("broken")
    kind, width, height = header
    if width * height > _MAX_STATED_PIXELS:
        raise NotSeen("too_big")
    return Picture(0, content, Image.MIME[kind], width, height)


async def made_smaller(content: bytes) -> Picture:
    """Return a picture with as many pixels as models look at; raise `NotSeen`."""
    limits = (MAX_PIXELS, _SCALING_MB, _SCALING_CPU_S)
    try:
        answer = await parse(_SCALING, limits, content, _SCALING_S)
    except ParserFailed as error:
        raise NotSeen("too_big") from error
    if "refused" in answer:
        raise NotSeen("too_big" if answer["refused"] == "too_long" else "broken")
    jpeg = b64decode(answer["jpeg"])
    return Picture(0, jpeg, "image/jpeg", answer["width"], answer["height"])


def with_descriptions(
    seen: Sequence[tuple[int, str]], descriptions: Mapping[int, str]
) -> tuple[tuple[int, str], ...]:
    """Return what is stored in place of photos, with what they show as far as it is known."""
    return tuple(
        (id_, f"{mark} {descriptions[id_]}" if descriptions.get(id_) else mark)
        for id_, mark in seen
    )
