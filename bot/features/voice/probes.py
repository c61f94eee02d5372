"""Does the server of the transcription model take a sound; does that of the speech model speak."""

import io
import wave

from bot.features.voice.servers import SPEECH_TIMEOUT_S, Speaker, Transcriber
from bot.features.voice.settings import VoiceSettings
from bot.model.openai_client import open_client
from bot.probe import Probe, Row, Rows
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
    silence = io.BytesIO()
    with wave.open(silence, "wb") as sound:
        sound.setparams((1, 2, _SAMPLES_A_SECOND, 0, "NONE", ""))
        sound.writeframes(bytes(2 * _SAMPLES_A_SECOND))
    async with open_client(settings.transcription_base_url, key, _TIMEOUT_S) as client:
        await Transcriber(client, name, _TIMEOUT_S).words(silence.getvalue(), "wav")
        yield Row(_WHAT, "ok", f"{name} listens")


async def _spoken_answers(settings: VoiceSettings) -> Rows:
    """Yield one row; one word is spoken."""
    name, key = settings.speech_model, secret_of(settings.speech_api_key)
    if name is None:
        yield Row(_SPOKEN, "ok", "off: answers to voice messages come as text")
        return
    async with open_client(settings.speech_base_url, key, SPEECH_TIMEOUT_S) as client:
        await Speaker(client, name, settings.speech_voice).sound("Hello.")
        yield Row(_SPOKEN, "ok", f"{name} speaks as {settings.speech_voice}")


PROBES = (
    Probe(
        _WHAT,
        _voice_messages,
        lambda settings: bool(settings.transcription_api_key) or not settings.lacks_key(),
        "TRANSCRIPTION_MODEL",
        ", or do without: TRANSCRIPTION_MODEL=off",
    ),
    Probe(
        _SPOKEN,
        _spoken_answers,
        lambda settings: bool(settings.speech_api_key) or not settings.lacks_key(),
        "SPEECH_MODEL",
        ", try another SPEECH_VOICE, or do without: SPEECH_MODEL=off",
    ),
)
