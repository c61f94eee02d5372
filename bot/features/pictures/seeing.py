"""The step that fetches photos for the model. No byte of them is stored.

They are fetched one after another, and each is read in a process of its own before the next one is
fetched. So the bot's process never parses a picture, and holds at most one large file of an album.
"""

from collections.abc import Sequence
from dataclasses import replace

import structlog

from bot.commands.sentences import Sentences
from bot.parsing.answers import NotRead
from bot.parsing.pictures import MAX_PICTURE_BYTES, MAX_SHOWN_BYTES, read_picture
from bot.telegram.chat import Chat
from bot.telegram.edits import LATE_PHOTO_MARK, PHOTO_MARK
from bot.telegram.message_content import HEIC_TYPES
from bot.telegram.updates import IncomingMessage
from bot.turn.answer import download
from bot.turn.outbox import Below
from bot.turn.permits import MAX_PICTURES
from bot.turn.request import Request, with_words
from memory.behaviors.context import AgentContext
from memory.message import ImageDetail, Picture
from memory.scopes.history import ChatHistory
from memory.text.tokens import TokenCounter

log = structlog.get_logger(__name__)

_MAX_FETCHED_BYTES = 64 * 2**20
"""Of all pictures of a turn; an album of ten from a camera has about 50 MB."""
_MAX_SHOWN_BYTES = 5 * 2**20
"""Of all pictures of a turn, as the model sees them."""


class NotSeen(Exception):
    """Raised when a file cannot be shown to a model; the text is the name of a sentence."""


class PictureStep:
    """Brings the photos of a turn into its request.

    The model then looks at them with `detail`, None if it sees no pictures.
    """

    def __init__(
        self, chat: Chat, detail: ImageDetail | None, tokens: TokenCounter, sentences: Sentences
    ) -> None:
        self._chat = chat
        self._detail = detail
        self._tokens = tokens
        self._sentences = sentences

    async def answer(self, request: Request, history: ChatHistory) -> Request | None:
        """Return the request with its pictures, None if there are none.

        What cannot be seen is said below the answer, and does not hide the other pictures. A
        picture whose album was answered before says so, also in the history. Raise `TelegramError`
        if Telegram cannot be reached.
        """
        photos = [each for each in request.updates if each.kind == "photo"][:MAX_PICTURES]
        if not photos:
            return None
        pictures, refusals = await self.fetch(photos)
        if refusals:
            log.info("photos not seen", reasons=refusals)
        if refusals and not (request.is_sticker and request.message.text):
            keys = [f"pictures.{refusal}" for refusal in refusals]
            if pictures:
                keys.insert(0, "pictures.not_all")
            values = {"seen": len(pictures), "count": len(photos)}
            notes = [self._sentences.text(request.language, key, **values) for key in keys]
            request.run.notes += (" ".join(notes),)
        if not pictures:
            return None
        answered = {each.album for each in history.messages if each.album}
        seen = {each.message_id for each in pictures}
        request.run.seen = tuple(
            (photo.message_id, LATE_PHOTO_MARK if photo.album in answered else PHOTO_MARK)
            for photo in photos
            if photo.message_id in seen
        )
        return replace(with_words(request, request.run.seen, self._tokens), pictures=pictures)

    async def fetch(
        self, photos: Sequence[IncomingMessage]
    ) -> tuple[tuple[Picture, ...], tuple[str, ...]]:
        """Return the photos that can be seen, and why others cannot, each reason once.

        Raise `TelegramError` if Telegram cannot be reached.
        """
        pictures: list[Picture] = []
        refusals: dict[str, None] = {}
        left = _MAX_FETCHED_BYTES
        max_bytes = min(MAX_SHOWN_BYTES, _MAX_SHOWN_BYTES // len(photos))
        for photo in photos:
            try:
                content = await self._content(photo, min(MAX_PICTURE_BYTES, left))
                left -= len(content)
                picture = await read_picture(content, max_bytes)
            except NotSeen as refusal:
                refusals[str(refusal)] = None
            except NotRead as why:
                refusals["too_big" if why.reason == "too_big" else "broken"] = None
            else:
                shown = replace(picture, message_id=photo.message_id, detail=self._detail or "low")
                pictures.append(shown)
        return tuple(pictures), tuple(refusals)

    async def _content(self, photo: IncomingMessage, max_bytes: int) -> bytes:
        if self._detail is None:
            raise NotSeen("blind")
        if photo.file is None:
            raise NotSeen("gone")
        if photo.file.mime_type in HEIC_TYPES:
            raise NotSeen("heic")
        try:
            return await download(self._chat, photo.file, max_bytes)
        except NotRead as refusal:
            raise NotSeen(refusal.reason) from refusal


class PictureNote:
    """Says below an answer why the model saw no picture, and keeps what the pictures show."""

    def __init__(self, sentences: Sentences) -> None:
        self._sentences = sentences

    async def below(self, request: Request, context: AgentContext, _: str) -> Below:
        """Return the lines, and note in the run what stands in place of the photos."""
        request.run.seen = tuple(
            (id_, f"{mark} {context.seen.get(id_, '')}".rstrip()) for id_, mark in request.run.seen
        )
        if context.is_blind and not request.is_sticker:
            return Below(self._sentences.say(request.language, "pictures.blind"))
        if context.are_pictures_refused:
            return Below(self._sentences.say(request.language, "pictures.not_shown"))
        return Below()
