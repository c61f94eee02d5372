"""A text is spoken within a time limit and a size, as OGG with Opus, or not at all."""

import pytest

from bot.features.voice import servers
from bot.features.voice.servers import Speaker, Transcriber
from bot.model.call import CallReport, Usage
from bot.model.model_errors import ModelError, ModelRefused, ModelUnavailable, NotAModel
from bot.model.openai_client import ModelClient
from tests.bot.model.conftest import client, script, server
from tests.servers.model_api import OPUS_HEAD, ApiError, Break, ModelApiServer, is_speech

__all__ = ["client", "script", "server"]


@pytest.fixture
def voice(client: ModelClient) -> Speaker:
    return Speaker(client, "mouth", "nova")


async def test_a_sound_comes_as_the_server_made_it(voice: Speaker) -> None:
    assert await voice.sound("Grüß Gott!") == OPUS_HEAD + "Grüß Gott!".encode()


@pytest.mark.parametrize(
    ("fault", "error"),
    [(Break.HTML, NotAModel), (Break.HANG, ModelUnavailable), (ApiError(400, "no"), ModelRefused)],
)
async def test_a_server_that_does_not_speak_is_given_up(
    voice: Speaker, server: ModelApiServer, fault: Break | ApiError, error: type[ModelError]
) -> None:
    voice.timeout_s = 0.3
    server.faults.add(fault, when=is_speech)
    with pytest.raises(error):
        await voice.sound("Hello")


async def test_a_sound_that_is_too_large_is_not_read_to_its_end(
    voice: Speaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "_MAX_SOUND_BYTES", 1_000)
    with pytest.raises(NotAModel):
        await voice.sound("x" * 2_000)


async def test_characters_are_counted_also_if_the_sound_never_comes(
    client: ModelClient, server: ModelApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "SPEECH_TIMEOUT_S", 1)
    reports: list[CallReport] = []
    voice = Speaker(client, "mouth", "nova", [reports.append])
    await voice.sound("Hello")
    for fault in (Break.HANG, ApiError(400, "no")):
        server.faults.add(fault, when=is_speech)
        with pytest.raises(ModelError):
            await voice.sound("Hello")
    assert [report.usage.spoken_chars for report in reports] == [5, 5, 0]


@pytest.mark.parametrize(
    ("sound", "stated_s", "heard_s"),
    [
        (b"x" * 15_000, 12, 12),
        (b"x" * 15_000, 1_200, 20),  # no codec makes it longer
        (b"x", 0, 1),
        (b"x" * 15_000 + b"OggS\0\0" + (480_000).to_bytes(8, "little"), 1, 10),
    ],
)
async def test_the_length_of_a_sound_is_counted_and_no_app_can_state_it_wrongly(
    client: ModelClient, sound: bytes, stated_s: int, heard_s: int
) -> None:
    reports: list[CallReport] = []
    await Transcriber(client, "ear", 10, [reports.append]).words(sound, "ogg", stated_s)
    assert reports[0].usage == Usage(14, 3, heard_s=heard_s)
