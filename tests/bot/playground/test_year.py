"""Questions that a visitor asks about the made-up year are answered with the right message."""

import asyncio
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from bot.app import App
from bot.model.circuit_breaker import CircuitBreaker
from bot.model.models import Models
from bot.playground.bot_api import BotApiServer
from bot.playground.inspector import Inspector
from bot.playground.offline_memory import OfflineInternalModel
from bot.playground.offline_model import OfflineChatModel
from bot.playground.offline_senses import OfflineServer
from bot.playground.scene import PageChat, Scene
from bot.playground.year.filling import YearFiller, YearModel
from memory.store.embedded import EmbeddedValkey
from tests.settings import Settings

QUESTIONS = tomllib.loads((Path(__file__).parent / "questions.toml").read_text())["questions"]
AT_LEAST = 16


@pytest.fixture
def redis(tmp_path: Path) -> Any:
    valkey = EmbeddedValkey(tmp_path)
    yield valkey.start()
    valkey.stop()


@asynccontextmanager
async def maya(redis: str, tmp_path: Path) -> AsyncIterator[tuple[PageChat, YearFiller]]:
    """Give Maya's chat with a bot whose memory holds her year, and no model."""

    @asynccontextmanager
    async def models(*_: object) -> AsyncIterator[Models]:
        internal = YearModel(filler.year, OfflineInternalModel())
        yield Models(
            [OfflineChatModel(0, 0)], internal, None, CircuitBreaker(), (), OfflineServer()
        )

    async with BotApiServer() as telegram:
        scene = Scene(telegram)
        inspector = Inspector(telegram, scene)
        filler = YearFiller(telegram, scene, inspector)
        settings = Settings(
            telegram_bot_token=SecretStr(telegram.token),
            telegram_api_url=telegram.url,
            data_dir=tmp_path,
            coalesce_s=0,
            sends_per_second=0,
            port=0,
        )
        stopping = asyncio.Event()
        app = App(settings, redis, observer=inspector.observe, models=models)
        serving = asyncio.create_task(app.run(stopping))
        is_filled = partial(lambda: inspector.memory is not None)
        await telegram.wait_for(is_filled, 60)
        place = filler.start()
        await telegram.wait_for(lambda: filler.done is None, 60)
        yield place, filler
        stopping.set()
        await serving


async def ask(place: PageChat, text: str) -> str:
    """Return the answer to a message; the bot's own questions about old facts are none."""
    before = len(place.messages)
    await place.speaker.say(place.chat, text)
    while True:
        said = [m.text for m in place.messages[before:] if m.sender != place.speaker.user]
        answers = [each for each in said if not each.startswith("Is this still so")]
        if answers:
            return "\n".join(answers)
        await asyncio.sleep(0.01)


SUGGESTED = (
    "Sea Glass, number 218",
    "under the blue flowerpot",
    "a spoon of horseradish",
    "weighs 6.2 kilos",
    "Walnuts",
    "Tamsin",
    "Ines is expecting a baby",
    "4711-B",
    "Black Krim",
    "every Monday at half past seven",
    "From 5 May",
    "at most 90 centimeters high",
)


async def test_every_suggested_question_is_answered(redis: str, tmp_path: Path) -> None:
    async with maya(redis, tmp_path) as (place, filler):
        answers = [await ask(place, asked) for asked in filler.year.questions]
    for answer, said in zip(answers, SUGGESTED, strict=True):
        assert said in answer
    assert sum("What I learned" in answer for answer in answers) >= 3


@pytest.mark.parametrize("language", ["en", "de", "es", "fa", "ru"])
async def test_most_questions_of_ones_own_are_answered_with_the_right_message(
    redis: str, tmp_path: Path, language: str
) -> None:
    async with maya(redis, tmp_path) as (place, _):
        answers = [(each["has"], await ask(place, each[language])) for each in QUESTIONS]
    wrong = [(wanted, said) for wanted, said in answers if wanted not in said]
    assert len(answers) - len(wrong) >= AT_LEAST, wrong
