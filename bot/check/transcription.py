"""The transcription model: does the server take a sound. The bot also works without one."""

import io
import wave

from bot.check.model_trouble import name_shared_key, optional_trouble
from bot.check.rows import Row, Rows
from bot.model.model_errors import ModelError
from bot.model.models import secret_of
from bot.model.openai_client import open_client
from bot.model.transcriber import OpenAITranscriber
from config.settings import Settings

_WHAT = "Voice messages"
_TIMEOUT_S = 30.0
_SAMPLES_A_SECOND = 16_000


async def check_transcription(settings: Settings) -> Rows:
    """Yield one row; a second of silence is sent."""
    name, key = settings.transcription_model, secret_of(settings.transcription_api_key)
    if name is None:
        yield Row(_WHAT, "ok", "off: the bot does not listen")
        return
    async with open_client(settings.transcription_base_url, key, _TIMEOUT_S) as client:
        try:
            await OpenAITranscriber(client, name, _TIMEOUT_S).words(_silence(), "wav")
        except ModelError as error:
            row = optional_trouble(_WHAT, error, "TRANSCRIPTION_MODEL")
            yield name_shared_key(row, settings, "TRANSCRIPTION")
            return
        yield Row(_WHAT, "ok", f"{name} listens")


def _silence() -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(_SAMPLES_A_SECOND)
        sound.writeframes(bytes(2 * _SAMPLES_A_SECOND))
    return file.getvalue()
