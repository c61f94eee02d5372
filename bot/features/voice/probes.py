"""Does the server of the transcription model take a sound; does that of the speech model speak."""

import io
import wave
from dataclasses import replace

from bot.features.voice.servers import SPEECH_TIMEOUT_S, Speaker, Transcriber
from bot.features.voice.settings import VoiceSettings
from bot.model.model_errors import ModelError, NotAModel
from bot.model.openai_client import open_client
from bot.probe import Probe, Row, Rows, name_shared_server, trouble
from config.values import secret_of

_WHAT = "Voice messages"
_SPOKEN = "Spoken answers"
_TIMEOUT_S = 30.0
_SAMPLES_A_SECOND = 16_000


async def _voice_messages(settings: VoiceSettings) -> Rows:
    """Yield one row; a second of silence is sent."""
    name, key = settings.transcription_model, secret_of(settings.transcription_api_key)
    if name is None:
        yield Row(_WHAT, "ok", "off: the bot does not listen")
        return
    async with open_client(settings.transcription_base_url, key, _TIMEOUT_S) as client:
        try:
            await Transcriber(client, name, _TIMEOUT_S).words(_silence(), "wav")
        except ModelError as error:
            row = _trouble(_WHAT, error, "TRANSCRIPTION_MODEL")
            yield name_shared_server(row, settings, "TRANSCRIPTION")
            return
        yield Row(_WHAT, "ok", f"{name} listens")


async def _spoken_answers(settings: VoiceSettings) -> Rows:
    """Yield one row; one word is spoken."""
    name, key = settings.speech_model, secret_of(settings.speech_api_key)
    if name is None:
        yield Row(_SPOKEN, "ok", "off: answers to voice messages come as text")
        return
    async with open_client(settings.speech_base_url, key, SPEECH_TIMEOUT_S) as client:
        try:
            await Speaker(client, name, settings.speech_voice).sound("Hello.")
        except ModelError as error:
            row = _trouble(_SPOKEN, error, "SPEECH_MODEL", ", try another SPEECH_VOICE")
            row = name_shared_server(row, settings, "SPEECH")
            is_other = isinstance(error, NotAModel)
            yield replace(row, seen="no OGG with Opus came") if is_other else row
            return
        yield Row(_SPOKEN, "ok", f"{name} speaks as {settings.speech_voice}")


def _trouble(what: str, error: ModelError, model: str, advice: str = "") -> Row:
    """Return the row of a model that the bot can do without; `advice` follows the usual one."""
    row = trouble(what, error, model)
    return replace(row, verdict="warn", advice=f"{row.advice}{advice}, or do without: {model}=off")


def _silence() -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(_SAMPLES_A_SECOND)
        sound.writeframes(bytes(2 * _SAMPLES_A_SECOND))
    return file.getvalue()


def _has_server(own_key: object, settings: VoiceSettings) -> bool:
    return own_key is not None or not settings.lacks_key()


PROBES = (
    Probe("Voice messages", _voice_messages, lambda s: _has_server(s.transcription_api_key, s)),
    Probe("Spoken answers", _spoken_answers, lambda s: _has_server(s.speech_api_key, s)),
)
