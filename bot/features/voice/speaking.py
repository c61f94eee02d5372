"""The answer to a voice message becomes a voice note; its text is the caption, or stands below.

Without the sound, for whatever reason, the text goes out as it is.
"""

import asyncio
from dataclasses import replace
from itertools import chain

import structlog

from bot.features.voice.speaker import MAX_SPOKEN_CHARS, Speaker
from bot.model.circuit_breaker import CircuitBreaker
from bot.model.model_errors import ModelError, reason_of
from bot.reply.attached import with_attached
from bot.reply.parts import Part
from bot.reply.render import rendered
from bot.telegram.chat import Chat
from bot.turn.outbox import Outbox
from bot.turn.request import Request
from memory.behaviors.tool_output import OutgoingFile

log = structlog.get_logger(__name__)

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
