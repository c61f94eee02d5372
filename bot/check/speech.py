"""The speech model: does the server speak, in the format that Telegram takes."""

from dataclasses import replace

from bot.check.model_trouble import name_shared_key, optional_trouble
from bot.check.rows import Row, Rows
from bot.model.model_errors import ModelError, NotAModel
from bot.model.models import secret_of
from bot.model.openai_client import open_client
from bot.model.speaker import SPEECH_TIMEOUT_S, Speaker
from config.settings import Settings

_WHAT = "Spoken answers"


async def check_speech(settings: Settings) -> Rows:
    """Yield one row; one word is spoken."""
    name, key = settings.speech_model, secret_of(settings.speech_api_key)
    if name is None:
        yield Row(_WHAT, "ok", "off: answers to voice messages come as text")
        return
    async with open_client(settings.speech_base_url, key, SPEECH_TIMEOUT_S) as client:
        try:
            await Speaker(client, name, settings.speech_voice).sound("Hello.")
        except ModelError as error:
            row = optional_trouble(_WHAT, error, "SPEECH_MODEL", ", try another SPEECH_VOICE")
            row = name_shared_key(row, settings, "SPEECH")
            is_other = isinstance(error, NotAModel)
            yield replace(row, seen="no OGG with Opus came") if is_other else row
            return
        yield Row(_WHAT, "ok", f"{name} speaks as {settings.speech_voice}")
