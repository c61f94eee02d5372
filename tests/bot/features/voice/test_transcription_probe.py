"""What the check finds out about the transcription model."""

from bot.features.voice.probes import _voice_messages as check_transcription
from tests.bot.features.conftest import SettingsOf, rows_of
from tests.servers.model_api import ApiError, ModelApiServer, TranscriptionRequest, is_transcription


async def test_a_second_of_silence_is_sent(
    settings_of: SettingsOf, model_api: ModelApiServer
) -> None:
    settings = settings_of(openai_base_url=model_api.base_url, transcription_model="ears")
    [row] = (await rows_of(check_transcription(settings))).values()
    assert (row.verdict, row.seen) == ("ok", "ears listens")
    asked = model_api.log.calls[-1].request
    assert isinstance(asked, TranscriptionRequest)
    assert (asked.file_name, asked.mime_type, len(asked.sound)) == (
        "voice.wav",
        "audio/wav",
        32_044,
    )


async def test_a_bot_that_cannot_listen_is_no_failure(
    settings_of: SettingsOf, model_api: ModelApiServer
) -> None:
    settings = settings_of(openai_base_url=model_api.base_url)
    model_api.faults.add(ApiError(401, "Incorrect key"), when=is_transcription)
    [row] = (await rows_of(check_transcription(settings))).values()
    assert (row.verdict, row.advice) == (
        "warn",
        "check OPENAI_API_KEY, or do without: TRANSCRIPTION_MODEL=off",
    )
    off = settings_of(transcription_model="off")
    [row] = (await rows_of(check_transcription(off))).values()
    assert (row.verdict, row.seen) == ("ok", "off: the bot does not listen")
