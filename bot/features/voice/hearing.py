"""The step that listens: voice messages become texts before the next step answers them.

What was heard is shown above the answer. The sound is not stored.
"""

import structlog

from bot.commands.sentences import Sentences
from bot.features.voice.transcriber import Transcriber, ending_of
from bot.model.model_errors import ContentRefused, ModelRefused, NotAModel, reason_of
from bot.parsing.answers import NotRead
from bot.telegram.chat import Chat
from bot.telegram.updates import SentFile
from bot.turn.answer import download
from bot.turn.permits import SHORT_SOUND_BYTES
from bot.turn.request import Request, with_words
from memory.scopes.history import ChatHistory
from memory.text.tokens import TokenCounter

log = structlog.get_logger(__name__)

_MAX_BYTES = 20 * 2**20
"""Telegram lets bots fetch files up to this size."""
_MAX_S = 20 * 60
_MAX_QUOTED_CHARS = 600


class _NotHeard(Exception):
    """Raised when a sound cannot be written down; the text is the name of a sentence."""


class VoiceStep:
    """Writes down voice messages; without a `transcriber` it says that the bot cannot listen."""

    def __init__(
        self,
        transcriber: Transcriber | None,
        chat: Chat,
        tokens: TokenCounter,
        sentences: Sentences,
    ) -> None:
        self._transcriber = transcriber
        self._chat = chat
        self._tokens = tokens
        self._sentences = sentences

    async def answer(self, request: Request, _: ChatHistory) -> Request | None:
        """Return the request with the words in it, None if there are none.

        What cannot be heard is said below the answer, and does not hide the other messages.
        Raise `ModelError` or `TelegramError` if the servers cannot be reached.
        """
        updates = request.updates
        sounds = [(each.message_id, each.file) for each in updates if each.kind == "voice"]
        if not sounds:
            return None
        heard: list[tuple[int, str]] = []
        refusals: dict[str, None] = {}
        for id_, sound in sounds:
            try:
                heard.append((id_, await self._words(sound)))
            except _NotHeard as refusal:
                refusals[str(refusal)] = None
        if refusals:
            log.info("voice messages not heard", reasons=tuple(refusals))
            keys = [f"voice.{refusal}" for refusal in refusals]
            if heard:
                keys.insert(0, "voice.not_all")
            values = {"heard": len(heard), "count": len(sounds)}
            notes = [self._sentences.text(request.language, key, **values) for key in keys]
            request.run.notes += (" ".join(notes),)
        if not heard:
            return None
        request.run.heard = tuple(heard)
        quoted = " ".join(words for _, words in heard)
        if len(quoted) > _MAX_QUOTED_CHARS:
            quoted = quoted[:_MAX_QUOTED_CHARS].rstrip() + "…"
        quote = self._sentences.text(request.language, "voice.heard", words=quoted)
        request.run.before = f"{quote}\n\n"
        return with_words(request, heard, self._tokens)

    async def _words(self, sound: SentFile | None) -> str:
        """Return what is said; raise `_NotHeard`, `ModelError` or `TelegramError`."""
        if sound is None:
            raise _NotHeard("gone")
        if self._transcriber is None:
            raise _NotHeard("off")
        if sound.seconds > _MAX_S:
            raise _NotHeard("too_long")
        if not (ending := ending_of(sound.name, sound.mime_type)):
            raise _NotHeard("format")
        is_short = 0 < sound.nbytes <= SHORT_SOUND_BYTES
        try:
            max_bytes = SHORT_SOUND_BYTES if is_short else _MAX_BYTES
            content = await download(self._chat, sound, max_bytes)
        except NotRead as refusal:
            raise _NotHeard(refusal.reason) from refusal
        try:
            words = await self._transcriber.words(content, ending, sound.seconds)
        except (ModelRefused, ContentRefused, NotAModel) as error:
            log.warning("sound refused", **reason_of(error))
            raise _NotHeard("refused") from error
        if not words:
            raise _NotHeard("silence")
        return words
