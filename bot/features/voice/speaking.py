"""Voice messages become texts before the next step answers them, and the answer a voice note.

Without the sound, for whatever reason, the text goes out as it is.

What was heard is shown above the answer; the sound is not stored. The text of the answer is the
caption of the voice note, or stands below.
"""

import asyncio
from dataclasses import replace
from itertools import chain

import structlog

from bot.commands.sentences import Sentences
from bot.features.voice.servers import MAX_SPOKEN_CHARS, Speaker, Transcriber, ending_of
from bot.model.circuit_breaker import CircuitBreaker
from bot.model.model_errors import ContentRefused, ModelError, ModelRefused, NotAModel, reason_of
from bot.parsing.answers import NotRead
from bot.reply.parts import Part
from bot.reply.render import rendered
from bot.reply.split import with_attached
from bot.telegram.chat import Chat
from bot.telegram.updates import SentFile
from bot.turn.answer import download, read_media
from bot.turn.outbox import Outbox
from bot.turn.permits import SHORT_SOUND_BYTES
from bot.turn.request import Request, with_words
from memory.behaviors.tool_output import OutgoingFile
from memory.scopes.history import ChatHistory
from memory.text.tokens import TokenCounter

log = structlog.get_logger(__name__)

_MAX_BYTES = 20 * 2**20
"""Telegram lets bots fetch files up to this size."""
_MAX_S = 20 * 60
_MAX_QUOTED_CHARS = 600


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

        Raise `ModelError` or `TelegramError` if the servers cannot be reached.
        """
        sounds = [each for each in request.updates if each.kind == "voice"]
        heard = await read_media(request, sounds, self._words, self._sentences, "voice")
        if not heard:
            return None
        request.run.heard = tuple(heard)
        quoted = " ".join(words for _, words in heard)
        if len(quoted) > _MAX_QUOTED_CHARS:
            quoted = quoted[:_MAX_QUOTED_CHARS].rstrip() + "…"
        quote = self._sentences.text(request.language, "voice.heard", words=quoted)
        request.run.before = f"{quote}\n\n"
        return with_words(request, heard, self._tokens)

    async def _words(self, sound: SentFile) -> str:
        """Return what is said; raise `NotRead`, `ModelError` or `TelegramError`."""
        if self._transcriber is None:
            raise NotRead("off")
        if sound.seconds > _MAX_S:
            raise NotRead("too_long")
        if not (ending := ending_of(sound.name, sound.mime_type)):
            raise NotRead("format")
        is_short = 0 < sound.nbytes <= SHORT_SOUND_BYTES
        content = await download(self._chat, sound, SHORT_SOUND_BYTES if is_short else _MAX_BYTES)
        try:
            words = await self._transcriber.words(content, ending, sound.seconds)
        except (ModelRefused, ContentRefused, NotAModel) as error:
            log.warning("sound refused", **reason_of(error))
            raise NotRead("refused") from error
        if not words:
            raise NotRead("silence")
        return words


_NAME = "answer.ogg"


class SpokenAnswers:
    """Speaks the answers to voice messages; a server that fails rests for a while."""

    def __init__(self, speaker: Speaker, chat: Chat) -> None:
        self._speaker = speaker
        self._chat = chat
        self._breaker = CircuitBreaker()

    async def spoken(self, request: Request, outbox: Outbox) -> Outbox:
        """Return the answer, spoken if it can be."""
        if not request.run.heard or not self._chat.takes_voice(outbox.to.chat_id):
            return outbox
        text = await _speakable(outbox)
        sound = await self._sound(text, request.run.ends_at) if text else b""
        if not sound:
            return outbox
        first, *others = outbox.parts
        voice = Part("", file=OutgoingFile(_NAME, sound, kind="voice"))
        return replace(outbox, parts=(*with_attached((first,), [voice], as_caption=True), *others))

    async def _sound(self, text: str, ends_at: float) -> bytes:
        """Return the spoken text, empty if there is none by the deadline of the turn."""
        attempt = self._breaker.begin()
        if attempt is None:
            return b""
        try:
            async with asyncio.timeout_at(ends_at):
                sound = await self._speaker.sound(text)
        except TimeoutError:
            self._breaker.abandoned(attempt)
            log.warning("answer not spoken", reason="the turn's time is over")
            return b""
        except ModelError as error:
            self._breaker.failed(attempt, in_silence=False)
            log.warning("answer not spoken", **reason_of(error))
            return b""
        except BaseException:
            self._breaker.abandoned(attempt)
            raise
        self._breaker.answered(attempt)
        return sound


async def _speakable(outbox: Outbox) -> str:
    """Return the words of an answer; empty for code, a long text, files, and open questions."""
    has_file = any(part.file for part in outbox.parts)
    buttons = chain.from_iterable(outbox.parts[0].buttons) if outbox.parts else ()
    # The text of a question is edited when its buttons are pressed, and a caption cannot be.
    is_question = any(not each.callback_data.startswith("misheard:") for each in buttons)
    if has_file or is_question or len(outbox.said) > 2 * MAX_SPOKEN_CHARS:
        return ""
    parts = await rendered(outbox.said)
    if any(entity.type == "pre" for part in parts for entity in part.entities):
        return ""
    text = "\n".join(part.text for part in parts)
    return text if len(text) <= MAX_SPOKEN_CHARS else ""
