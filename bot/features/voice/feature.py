"""Voice messages become texts before the next step answers them, and the answer a voice note.

Without the sound, for whatever reason, the text goes out as it is. What was heard is shown above
the answer; the sound is not stored. The text of the answer is the caption of the voice note, or
stands below.
"""

import asyncio
import re
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import structlog

from bot.commands.fact_edits import OF_MESSAGE, FactEdits
from bot.commands.sentences import Sentences
from bot.feature import Feature, Services
from bot.features.voice.servers import (
    MAX_SPOKEN_CHARS,
    SPEECH_TIMEOUT_S,
    Speaker,
    Transcriber,
    ending_of,
    length_s,
)
from bot.features.voice.settings import VoiceSettings
from bot.model.model_errors import ContentRefused, ModelError, ModelRefused, NotAModel, reason_of
from bot.model.resilience import CircuitBreaker
from bot.parsing.answers import NotRead
from bot.reply.parts import Button, Part, Parts, shortened
from bot.reply.render import rendered
from bot.reply.split import with_attached
from bot.telegram.chat import Chat
from bot.telegram.updates import ButtonPress, SentFile
from bot.turn.answer import download, read_media
from bot.turn.notes import Below
from bot.turn.outbox import Outbox
from bot.turn.permits import SHORT_SOUND_BYTES
from bot.turn.request import Request, with_words
from config.values import secret_of
from memory.behaviors.context import AgentContext
from memory.behaviors.tool_output import OutgoingFile
from memory.erasure.questions import NotConfirmed
from memory.scopes.history import ChatHistory
from memory.store.keys import Scope
from memory.text.tokens import TokenCounter

log = structlog.get_logger(__name__)

_NAME = "answer.ogg"
_MAX_BYTES = 20 * 2**20  # Telegram lets bots fetch files up to this size
_MAX_S = 20 * 60
_MAX_QUOTED_CHARS = 600


def feature(services: Services) -> Feature:
    """Return the feature; without a transcriber it says that the bot does not listen."""
    settings, models = services.own(VoiceSettings), services.models
    transcriber, limit_s = None, settings.model_timeout_s
    if settings.transcription_model:
        key = secret_of(settings.transcription_api_key)
        server = models.client.to(settings.transcription_base_url, key, limit_s)
        transcriber = Transcriber(server, settings.transcription_model, limit_s)
    hearing = VoiceStep(transcriber, services.chat, services.memory.tokens, services.sentences)
    finishes = []
    if settings.speech_model:
        key = secret_of(settings.speech_api_key)
        server = models.client.to(settings.speech_base_url, key, SPEECH_TIMEOUT_S)
        speaker = Speaker(server, settings.speech_model, settings.speech_voice)
        finishes.append(SpokenAnswers(speaker, services.chat).spoken)
    return Feature(
        name="voice",
        buttons={_MISHEARD: partial(ask_what_was_said, services.edits)},
        file_steps={"voice": hearing.answer},
        notes=[partial(misheard_button, services.sentences)],
        finishes=finishes,
        ways=["way_voice"] if transcriber and models.hears else [],
    )


@dataclass(frozen=True, slots=True, eq=False)
class VoiceStep:
    """Writes down voice messages; without a `transcriber` it says that the bot cannot listen."""

    transcriber: Transcriber | None
    chat: Chat
    tokens: TokenCounter
    sentences: Sentences

    async def answer(self, request: Request, _: ChatHistory) -> Request | None:
        """Return the request with the words in it, or None; raise `ModelError`, `TelegramError`."""
        sounds = [each for each in request.updates if each.kind == "voice"]
        heard = await read_media(request, sounds, self._words, self.sentences, "voice")
        if not heard:
            return None
        request.run.heard = tuple(heard)
        quoted = shortened(" ".join(words for _, words in heard), _MAX_QUOTED_CHARS)
        quote = self.sentences.text(request.language, "voice.heard", words=quoted)
        request.run.before = f"{quote}\n\n"
        return with_words(request, heard, self.tokens)

    async def _words(self, sound: SentFile) -> str:
        if self.transcriber is None:
            raise NotRead("off")
        if sound.seconds > _MAX_S:
            raise NotRead("too_long")
        if not (ending := ending_of(sound.name, sound.mime_type)):
            raise NotRead("format")
        is_short = 0 < sound.nbytes <= SHORT_SOUND_BYTES
        content = await download(self.chat, sound, SHORT_SOUND_BYTES if is_short else _MAX_BYTES)
        if length_s(content, sound.seconds) > _MAX_S:
            raise NotRead("too_long")
        try:
            words = await self.transcriber.words(content, ending, sound.seconds)
        except (ModelRefused, ContentRefused, NotAModel) as error:
            log.warning("sound refused", **reason_of(error))
            raise NotRead("refused") from error
        if not words:
            raise NotRead("silence")
        return words


_MISHEARD = "misheard"
_VOICE = re.compile(r"(\d{1,10})\.(-?\d{1,19})\.(\d{1,10})", re.ASCII)
"""The id of a voice message, its sender and its time, as a button names it."""


async def misheard_button(
    sentences: Sentences, request: Request, _: AgentContext, __: str
) -> Below:
    """Return the button by which a person says what the last voice message really said."""
    if not request.run.heard:
        return Below()
    heard_id = request.run.heard[-1][0]
    said = next(each for each in request.updates if each.message_id == heard_id)
    label = sentences.text(request.language, "buttons.misheard")
    about = f"{_MISHEARD}:{heard_id}.{said.sender.id}.{said.sent_at}"
    return Below(buttons=(Button(label, about),))


async def ask_what_was_said(
    edits: FactEdits, pressed: ButtonPress, here: Scope, voice: str
) -> Parts:
    """Ask for what was really said; the answer stays as it is."""
    named = _VOICE.fullmatch(voice)
    if named is None:
        raise NotConfirmed("unknown")
    message_id, sender_id, sent_at = named.groups()
    if int(sender_id) != pressed.sender.id:
        raise NotConfirmed("not_yours")
    await edits.ask_for_words(pressed, here, "voice.ask", f"{OF_MESSAGE}{message_id}.{sent_at}")
    return ()


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
        attempt = self._breaker.begin()
        if attempt is None:
            return b""
        try:
            async with asyncio.timeout_at(ends_at):
                sound = await self._speaker.sound(text)
        except TimeoutError:
            log.warning("answer not spoken", reason="the turn's time is over")
            return b""
        except ModelError as error:
            self._breaker.failed(attempt, in_silence=False)
            log.warning("answer not spoken", **reason_of(error))
            return b""
        finally:
            self._breaker.ended(attempt)
        self._breaker.answered()
        return sound


async def _speakable(outbox: Outbox) -> str:
    """Return the words of an answer; empty for code, a long text, files, and open questions."""
    has_file = any(part.file for part in outbox.parts)
    buttons = chain.from_iterable(outbox.parts[0].buttons) if outbox.parts else ()
    # The text of a question is edited when its buttons are pressed, and a caption cannot be.
    is_question = any(not each.callback_data.startswith(f"{_MISHEARD}:") for each in buttons)
    if has_file or is_question or len(outbox.said) > 2 * MAX_SPOKEN_CHARS:
        return ""
    parts = await rendered(outbox.said)
    if any(entity.type == "pre" for part in parts for entity in part.entities):
        return ""
    text = "\n".join(part.text for part in parts)
    return text if len(text) <= MAX_SPOKEN_CHARS else ""
