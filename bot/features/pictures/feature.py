"""What pictures add to the bot: the step that fetches photos for the model. No byte is stored.

Each is read in a process of its own before the next one is fetched. So the bot's process never
parses a picture, and holds at most one large file of an album.
"""

from dataclasses import dataclass, replace

from bot.agent.agent import RunAgent
from bot.commands.sentences import Sentences
from bot.feature import Feature, Services
from bot.features.pictures.describing import SEND_PHOTO_AGAIN, DescribingAgent, PictureDescriptions
from bot.features.pictures.settings import PictureSettings
from bot.parsing.answers import NotRead
from bot.parsing.pictures import MAX_PICTURE_BYTES, MAX_SHOWN_BYTES, read_picture
from bot.telegram.chat import Chat
from bot.telegram.message_content import HEIC_TYPES
from bot.telegram.updates import SentFile
from bot.turn.answer import download, read_media
from bot.turn.notes import Below
from bot.turn.permits import MAX_PICTURES
from bot.turn.request import Request, with_words
from memory.behaviors.context import AgentContext
from memory.message import ImageDetail, Picture
from memory.scopes.history import ChatHistory
from memory.text.tokens import TokenCounter

PHOTO_MARK = "[photo]"  # begins the text that is stored in place of a photo
LATE_PHOTO_MARK = f"{PHOTO_MARK} (one more of the album just shown)"
"""Stands for a photo whose album was answered without it."""
_MAX_FETCHED_BYTES = 64 * 2**20
"""Of all pictures of a turn; an album of ten from a camera has about 50 MB."""
_MAX_SHOWN_BYTES = 5 * 2**20  # of all pictures of a turn, as the model sees them


def feature(services: Services) -> Feature:
    """Return the feature; with `IMAGE_DETAIL=off` it says that the bot sees no pictures."""
    settings = services.own(PictureSettings)
    detail = None if settings.image_detail == "off" else settings.image_detail
    step = PictureStep(services.chat, detail, services.memory.tokens, services.sentences)

    def describing(run: RunAgent) -> RunAgent:
        return DescribingAgent(run, services.models.chats).run

    return Feature(
        name="pictures",
        file_steps={"photo": step.answer},
        around=[describing],
        notes=[step.below],
        tools=[SEND_PHOTO_AGAIN] if detail else [],
        ways=["way_photo"] if detail else [],
    )


@dataclass(frozen=True, slots=True, eq=False)
class PictureStep:
    """Brings the photos of a turn into its request.

    The model then looks at them with `detail`, None if it sees no pictures.
    """

    chat: Chat
    detail: ImageDetail | None
    tokens: TokenCounter
    sentences: Sentences

    async def answer(self, request: Request, history: ChatHistory) -> Request | None:
        """Return the request with its pictures, None if none can be shown.

        A picture whose album was answered before says so, also in the history. Raise
        `TelegramError` if Telegram cannot be reached.
        """
        photos = [each for each in request.updates if each.kind == "photo"][:MAX_PICTURES]
        left = _MAX_FETCHED_BYTES
        max_bytes = min(MAX_SHOWN_BYTES, _MAX_SHOWN_BYTES // len(photos))

        async def seen(photo: SentFile) -> Picture:
            nonlocal left
            if self.detail is None:
                raise NotRead("blind")
            if photo.mime_type in HEIC_TYPES:
                raise NotRead("heic")
            content = await download(self.chat, photo, min(MAX_PICTURE_BYTES, left))
            left -= len(content)
            return replace(await read_picture(content, max_bytes), detail=self.detail)

        found = dict(await read_media(request, photos, seen, self.sentences, "pictures"))
        if not found:
            return None
        answered = {each.album for each in history.messages if each.album}
        request.run.seen = tuple(
            (photo.message_id, LATE_PHOTO_MARK if photo.album in answered else PHOTO_MARK)
            for photo in photos
            if photo.message_id in found
        )
        pictures = tuple(replace(each, message_id=id_) for id_, each in found.items())
        return replace(with_words(request, request.run.seen, self.tokens), pictures=pictures)

    async def below(self, request: Request, context: AgentContext, _: str) -> Below:
        """Say why the model saw no picture, and note in the run what the photos show."""
        shown = context.part(PictureDescriptions)
        request.run.seen = tuple(
            (id_, f"{mark} {shown.get(id_, '')}".rstrip()) for id_, mark in request.run.seen
        )
        if context.is_blind and not request.is_sticker:
            return Below(self.sentences.say(request.language, "pictures.blind"))
        if context.are_pictures_refused:
            return Below(self.sentences.say(request.language, "pictures.not_shown"))
        return Below()
