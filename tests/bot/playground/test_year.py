"""Questions that a visitor asks about the made-up year are answered with the right message."""

import asyncio
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from shutil import copytree

import pytest
from pydantic import SecretStr

from bot.app import App
from bot.model.models import Models
from bot.playground.inspector import Inspector
from bot.playground.offline_memory import OfflineInternalModel, OfflineServer
from bot.playground.offline_model import OfflineChatModel
from bot.playground.page_telegram import PageTelegram
from bot.playground.scene import BOT, Scene
from bot.playground.year import YearFiller
from memory.store.embedded import EmbeddedValkey
from tests.settings import Settings

pytestmark = pytest.mark.xdist_group("year")  # which is filled in once

QUESTIONS = tomllib.loads((Path(__file__).parent / "questions.toml").read_text())["questions"]
AT_LEAST = 16
Ask = Callable[[str], Awaitable[str]]


@asynccontextmanager
async def maya(folder: Path) -> AsyncIterator[tuple[Ask, YearFiller]]:
    """Give what asks a bot as Maya; it has no model, and her year is filled in if it is new."""

    @asynccontextmanager
    async def models(*_: object) -> AsyncIterator[Models]:
        chat = OfflineChatModel(0, 0)
        yield Models([chat], OfflineInternalModel(), None, (), OfflineServer())

    scene = Scene(folder / "scene.json")
    telegram = PageTelegram(scene)
    inspector = Inspector(telegram, scene)
    filler = YearFiller(inspector)
    settings = Settings(
        telegram_bot_token=SecretStr(f"{BOT.id}:none"), data_dir=folder, coalesce_s=0, port=0
    )
    stopping = asyncio.Event()
    valkey = EmbeddedValkey(folder)
    redis, observer = valkey.start(), inspector.observe
    app = App(settings, redis, models=models, telegram=telegram.open, observer=observer)
    serving = asyncio.create_task(app.run(stopping))
    await inspector.serving.wait()
    place = filler.start()
    async with asyncio.timeout(60):
        while filler.done is not None:
            await telegram.until_changed(telegram.change_count, 60)

    async def ask(text: str) -> str:
        """Return the answer to a message; the bot's own questions about old facts are none."""
        before = len(place.messages)
        telegram.say(place, place.speaker, text)
        while True:
            said = [m.text for m in place.messages[before:] if m.sender is BOT]
            if answers := [each for each in said if not each.startswith("Is this still so")]:
                return "\n".join(answers)
            await telegram.until_changed(telegram.change_count, 60)

    yield ask, filler
    stopping.set()
    await serving
    valkey.stop()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of a bot that has filled in the year and stopped."""
    folder = tmp_path_factory.mktemp("year")

    async def fill() -> None:
        async with maya(folder):
            pass

    asyncio.run(fill())
    return folder


@pytest.fixture
def folder(filled: Path, tmp_path: Path) -> Path:
    return copytree(filled, tmp_path / "year")


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


async def test_every_suggested_question_is_answered(folder: Path) -> None:
    async with maya(folder) as (ask, filler):
        answers = [await ask(asked) for asked in filler.year.questions]
    for answer, said in zip(answers, SUGGESTED, strict=True):
        assert said in answer
    assert sum("What I learned" in answer for answer in answers) >= 3


@pytest.mark.trial
@pytest.mark.parametrize("language", ["en", "de", "es", "fa", "ru"])
async def test_most_questions_of_ones_own_are_answered_with_the_right_message(
    folder: Path, language: str
) -> None:
    async with maya(folder) as (ask, _):
        answers = [(each["has"], await ask(each[language])) for each in QUESTIONS]
    wrong = [(wanted, said) for wanted, said in answers if wanted not in said]
    assert len(answers) - len(wrong) >= AT_LEAST, wrong
