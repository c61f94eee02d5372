"""The step that listens: voice messages become texts before the next step answers them.

What was heard is shown above the answer. The sound is not stored.
"""

import structlog

from bot.commands.sentences import Sentences
from bot.model.model_errors import ContentRefused, ModelRefused, NotAModel, reason_of
from bot.model.transcriber import Transcriber, ending_of
from bot.telegram.chat import Chat
from bot.telegram.errors import Refused
from bot.telegram.updates import SentFile
from bot.turn.at_work import AtWork
from bot.turn.outbox import Outbox
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
        at_work: AtWork,
        sentences: Sentences,
    ) -> None:
        self._transcriber = transcriber
        self._chat = chat
        self._tokens = tokens
        self._at_work = at_work
        self._sentences = sentences

    async def answer(self, request: Request, _: ChatHistory) -> Outbox | Request | None:
        """Return the request with the words in it, or a notice if there is nothing to answer.

        Raise `ModelError` or `TelegramError` if the servers cannot be reached.
        """
        sounds = [(each.message_id, each.file) for each in request.updates if each.kind == "voice"]
        if not sounds:
            return None
        try:
            async with self._at_work.shown(request.to):
                heard = tuple([(id_, await self._words(sound)) for id_, sound in sounds if sound])
        except _NotHeard as refusal:
            log.info("voice message not heard", reason=str(refusal))
            if request.message.text:
                return None
            return Outbox(request.to, self._sentences.say(request.language, f"voice.{refusal}"))
        request.run.heard = heard
        quoted = " ".join(words for _, words in heard)
        if len(quoted) > _MAX_QUOTED_CHARS:
            quoted = quoted[:_MAX_QUOTED_CHARS].rstrip() + "…"
        quote = self._sentences.text(request.language, "voice.heard", words=quoted)
        request.run.before = f"{quote}\n\n"
        return with_words(request, heard, self._tokens)

    async def _words(self, sound: SentFile) -> str:
        """Return what is said; raise `_NotHeard`, `ModelError` or `TelegramError`."""
        if self._transcriber is None:
            raise _NotHeard("off")
        if sound.seconds > _MAX_S:
            raise _NotHeard("too_long")
        if sound.nbytes > _MAX_BYTES:
            raise _NotHeard("too_big")
        if not (ending := ending_of(sound.name, sound.mime_type)):
            raise _NotHeard("format")
        try:
            content = await self._chat.download(sound.file_id, _MAX_BYTES)
        except Refused as refusal:
            raise _NotHeard("too_big" if refusal.reason == "too_big" else "gone") from refusal
        try:
            words = await self._transcriber.words(content, ending)
        except (ModelRefused, ContentRefused, NotAModel) as error:
            log.warning("sound refused", **reason_of(error))
            raise _NotHeard("refused") from error
        if not words:
            raise _NotHeard("silence")
        return words
