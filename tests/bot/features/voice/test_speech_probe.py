"""What the check finds out about the speech model."""

from bot.features.voice.probes import _spoken_answers as check_speech
from tests.bot.features.conftest import SettingsOf, rows_of
from tests.servers.model_api import ApiError, Break, ModelApiServer, SpeechRequest, is_speech


async def test_a_model_that_speaks(settings_of: SettingsOf, model_api: ModelApiServer) -> None:
    settings = settings_of(openai_base_url=model_api.base_url, speech_model="mouth")
    [row] = (await rows_of(check_speech(settings))).values()
    assert (row.verdict, row.seen) == ("ok", "mouth speaks as alloy")
    asked = model_api.log.calls[-1].request
    assert isinstance(asked, SpeechRequest)
    assert (asked.model, asked.voice, asked.response_format) == ("mouth", "alloy", "opus")


async def test_a_server_that_does_not_speak_is_a_warning(
    settings_of: SettingsOf, model_api: ModelApiServer
) -> None:
    settings = settings_of(openai_base_url=model_api.base_url, speech_model="mouth")
    model_api.faults.add(ApiError(401, "Incorrect key"), when=is_speech)
    [row] = (await rows_of(check_speech(settings))).values()
    assert row.verdict == "warn"
    assert row.advice.startswith("check OPENAI_API_KEY")
    assert row.advice.endswith("or do without: SPEECH_MODEL=off")
    model_api.faults.add(Break.HTML, when=is_speech)
    [row] = (await rows_of(check_speech(settings))).values()
    assert (row.verdict, row.seen) == ("warn", "no OGG with Opus came")


async def test_without_a_speech_model_answers_come_as_text(settings_of: SettingsOf) -> None:
    [row] = (await rows_of(check_speech(settings_of(speech_model="off")))).values()
    assert (row.verdict, row.seen) == ("ok", "off: answers to voice messages come as text")
