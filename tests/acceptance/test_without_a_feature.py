"""Without the folder of any one feature, and its line in the list, everything else works."""

import re
from pathlib import Path

import pytest

from bot.features import OUR_FEATURES
from tests.acceptance.bot_process import ROOT
from tests.acceptance.buttons import erase_now
from tests.acceptance.memory_model import main_requests, remember_with
from tests.acceptance.rig import Rig
from tests.acceptance.talk import ask_and_learn, ask_fully

LIST = Path("bot", "features", "__init__.py")


def without(name: str, folder: Path) -> Path:
    """Make a folder with links to all of the product but one feature and bytecode of lists."""
    features = folder / "bot" / "features"
    features.mkdir(parents=True)
    for package in ("config", "memory"):
        (folder / package).symlink_to(ROOT / package)
    left_out = [ROOT / LIST.parent / each for each in ("", "__init__.py", "__pycache__", name)]
    for each in (*(ROOT / "bot").iterdir(), *(ROOT / LIST.parent).iterdir()):
        if each not in left_out:
            (folder / each.relative_to(ROOT)).symlink_to(each)
    listed = (ROOT / LIST).read_text()
    left = re.sub(rf'    "{name}": .*\n', "", listed)
    assert left != listed
    (folder / LIST).write_text(left)
    return folder


@pytest.mark.trial
@pytest.mark.parametrize("name", OUR_FEATURES)
async def test_the_bot_remembers_and_forgets_without(rig: Rig, tmp_path: Path, name: str) -> None:
    remember_with(rig)
    rig.environment["PWD"] = str(without(name, tmp_path))
    anna, chat = await rig.start_with_anna(learn="facts", learn_every_turns=1)
    assert "Anna" in (await rig.ask(anna, chat, "/start")).text
    assert "/clear" in (await rig.ask(anna, chat, "/help")).text
    await ask_and_learn(rig, anna, chat, "My boat is called Aurora")
    await ask_and_learn(rig, anna, chat, "Is it raining?")
    assert "Aurora" in main_requests(rig)[-1].memory
    if name != "memory_page":
        assert "Aurora" in (await ask_fully(rig, anna, chat, "/memory")).text
    await erase_now(rig, anna, chat, "/clear")
    assert "is erased" in str(chat.texts)
    await ask_and_learn(rig, anna, chat, "Is it still raining?")
    assert "Aurora" not in str(main_requests(rig)[-1].messages)
