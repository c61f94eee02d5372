"""Texts are spoken and sounds written down within limits; `check` says whether they can be."""

import asyncio
from dataclasses import replace

import pytest

from bot.features.check.command_line import run_probe
from bot.features.voice import servers
from bot.features.voice.feature import SpokenAnswers, feature
from bot.features.voice.probes import PROBES
from bot.features.voice.servers import Speaker, Transcriber
from bot.model.call import Usage
from bot.model.model_errors import ModelRefused, ModelUnavailable, NotAModel
from bot.model.openai_client import ModelClient
from bot.reply.parts import Part
from bot.turn.outbox import Outbox
from memory.memory import Memory
from tests.bot.features.conftest import SettingsOf, rows_of
from tests.bot.features.services import services_of
from tests.bot.model.conftest import client, reports_of, script, server
from tests.bot.turn.test_follow_ups import request_of
from tests.quiet_chat import QuietChat
from tests.servers.model_api import (
    OPUS_HEAD,
    ApiError,
    Break,
    ModelApiServer,
    SpeechRequest,
    TranscriptionRequest,
    is_speech,
    is_transcription,
)

__all__ = ["client", "script", "server"]

TRANSCRIPTION, SPEECH = PROBES


@pytest.mark.parametrize("ways", [["way_voice"], []])
def test_people_are_told_to_send_voice_only_if_models_hear(memory: Memory, ways: list[str]) -> None:
    services = services_of(memory)
    services = replace(services, models=replace(services.models, hears=bool(ways)))
    assert feature(services).ways == ways


async def test_a_sound_that_is_too_large_or_none_is_not_taken(
    client: ModelClient, server: ModelApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "_MAX_SOUND_BYTES", 1_000)
    voice = Speaker(client, "mouth", "nova")
    with pytest.raises(NotAModel):
        await voice.sound("x" * 2_000)
    server.faults.add(Break.HTML, when=is_speech)
    with pytest.raises(NotAModel):
        await voice.sound("Hello")


async def test_a_sound_comes_as_it_was_made_and_characters_count_also_if_it_never_comes(
    client: ModelClient, server: ModelApiServer
) -> None:
    reports = reports_of(client)
    voice = Speaker(client, "mouth", "nova", 1)
    assert await voice.sound("Grüß") == OPUS_HEAD + "Grüß".encode()
    for fault, error in ((Break.HANG, ModelUnavailable), (ApiError(400, "no"), ModelRefused)):
        server.faults.add(fault, when=is_speech)
        with pytest.raises(error):
            await voice.sound("Hello")
    assert [report.usage.spoken_chars for report in reports] == [4, 5, 0]


WAV = b"RIFF____WAVEfmt ".ljust(28)
WAV_OF_RECORDER = b"RIFF____WAVEJUNK".ljust(28) + bytes(4)  # its rate comes later


@pytest.mark.parametrize(
    ("sound", "stated_s", "heard_s"),
    [
        (b"x" * 15_000, 12, 12),
        (b"x" * 15_000, 1_200, 20),  # no codec makes it longer
        (b"x", 0, 1),
        (b"x" * 80_000, 0, 5),
        (b"x" * 80_000 + b"OggS\0\0" + (1).to_bytes(8, "little"), 0, 5),  # a forged page
        (WAV + b"\xff" * 4 + b"x" * 383_968, 0, 2),  # a forged rate
        (WAV + (32_000).to_bytes(4, "little") + b"x" * 95_968, 0, 3),
        (WAV_OF_RECORDER + b"x" * 383_968, 2, 2),
        (WAV_OF_RECORDER + b"x" * 383_968, 0, 2),
        (b"fLaC".ljust(360_000), 3, 3),
        (b"____ftyp".ljust(384_000), 3, 3),  # a round video has 1 Mbit/s
        (b"x" * 480_000 + b"OggS\0\0" + bytes(8), 1, 2),  # a changed app states less
        (b"x" * 15_000 + b"OggS\0\0" + (480_000).to_bytes(8, "little"), 1, 10),
        (b"OggS\0\0" + (480_000).to_bytes(8, "little") + b"x" * 65_307, 1, 1),  # no last page
    ],
    ids=lambda value: str(value)[:20],
)
async def test_the_length_of_a_sound_is_counted_within_what_its_bytes_allow(
    client: ModelClient, sound: bytes, stated_s: int, heard_s: int
) -> None:
    reports = reports_of(client)
    await Transcriber(client, "ear", 10).words(sound, "ogg", stated_s)
    assert reports[0].usage == Usage(14, 3, heard_s=heard_s)


class SlowSpeaker(Speaker):
    def __init__(self) -> None:
        self.asked: list[str] = []

    async def sound(self, text: str) -> bytes:
        self.asked.append(text)
        await asyncio.Event().wait()
        return b""


async def test_an_answer_is_not_lost_if_its_sound_takes_beyond_the_deadline() -> None:
    asked, speaker = request_of("Hello"), SlowSpeaker()
    answer = Outbox(asked.to, (Part("I am fine."),), said="I am fine.")
    spoken = SpokenAnswers(speaker, QuietChat())
    asked.run.heard = ((1, "How are you?"),)
    asked.run.ends_at = asyncio.get_running_loop().time() + 0.01
    assert await spoken.spoken(asked, answer) == answer
    assert speaker.asked == ["I am fine."]


async def test_a_model_that_speaks(settings_of: SettingsOf, model_api: ModelApiServer) -> None:
    settings = settings_of(openai_base_url=model_api.base_url, speech_model="mouth")
    [row] = (await rows_of(run_probe(SPEECH, settings))).values()
    assert (row.verdict, row.seen) == ("ok", "mouth speaks as alloy")
    asked = model_api.log.calls[-1].request
    assert isinstance(asked, SpeechRequest)
    assert (asked.model, asked.voice, asked.response_format) == ("mouth", "alloy", "opus")


async def test_a_server_that_does_not_speak_is_a_warning_and_no_model_is_none(
    settings_of: SettingsOf, model_api: ModelApiServer
) -> None:
    settings = settings_of(openai_base_url=model_api.base_url, speech_model="mouth")
    model_api.faults.add(ApiError(401, "Incorrect key"), when=is_speech)
    [row] = (await rows_of(run_probe(SPEECH, settings))).values()
    assert row.verdict == "warn"
    assert row.advice.startswith("check OPENAI_API_KEY")
    assert row.advice.endswith("or do without: SPEECH_MODEL=off")
    model_api.faults.add(Break.HTML, when=is_speech)
    [row] = (await rows_of(run_probe(SPEECH, settings))).values()
    assert (row.verdict, row.seen) == ("warn", "no OGG with Opus came")
    off = settings_of(openai_base_url=model_api.base_url, speech_model="off")
    [row] = (await rows_of(run_probe(SPEECH, off))).values()
    assert (row.verdict, row.seen) == ("ok", "off: answers to voice messages come as text")


async def test_silence_is_sent(settings_of: SettingsOf, model_api: ModelApiServer) -> None:
    settings = settings_of(openai_base_url=model_api.base_url, transcription_model="ears")
    [row] = (await rows_of(run_probe(TRANSCRIPTION, settings))).values()
    assert (row.verdict, row.seen) == ("ok", "ears listens")
    asked = model_api.log.calls[-1].request
    assert isinstance(asked, TranscriptionRequest)
    sent = asked.file_name, asked.mime_type, len(asked.sound)
    assert sent == ("voice.wav", "audio/wav", 32_044)


async def test_a_bot_that_cannot_listen_is_no_failure(
    settings_of: SettingsOf, model_api: ModelApiServer
) -> None:
    settings = settings_of(openai_base_url=model_api.base_url)
    model_api.faults.add(ApiError(401, "Incorrect key"), when=is_transcription)
    [row] = (await rows_of(run_probe(TRANSCRIPTION, settings))).values()
    advice = "check OPENAI_API_KEY, or do without: TRANSCRIPTION_MODEL=off"
    assert (row.verdict, row.advice) == ("warn", advice)
    off = settings_of(openai_base_url=model_api.base_url, transcription_model="off")
    [row] = (await rows_of(run_probe(TRANSCRIPTION, off))).values()
    assert (row.verdict, row.seen) == ("ok", "off: the bot does not listen")
