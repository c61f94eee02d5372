"""A text is spoken within a time limit and a size, as OGG with Opus, or not at all."""

import pytest

from bot.model import speaker
from bot.model.model_errors import ModelError, ModelRefused, ModelUnavailable, NotAModel
from bot.model.openai_client import ModelClient
from bot.model.speaker import Speaker
from tests.servers.model_api import OPUS_HEAD, ApiError, Break, ModelApiServer, is_speech


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
    voice: Speaker,
    server: ModelApiServer,
    monkeypatch: pytest.MonkeyPatch,
    fault: Break | ApiError,
    error: type[ModelError],
) -> None:
    monkeypatch.setattr(speaker, "SPEECH_TIMEOUT_S", 0.3)
    server.faults.add(fault, when=is_speech)
    with pytest.raises(error):
        await voice.sound("Hello")


async def test_a_sound_that_is_too_large_is_not_read_to_its_end(
    voice: Speaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speaker, "_MAX_BYTES", 1_000)
    with pytest.raises(NotAModel):
        await voice.sound("x" * 2_000)
