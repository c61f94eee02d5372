"""A bot whose clock is hours off from Telegram's."""

from pathlib import Path

import pytest

from tests.acceptance.buttons import ask_first, erase
from tests.acceptance.rig import open_rig
from tests.lab.faults.clocks import FAKED, MISSING
from tests.stored import everything_stored


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
@pytest.mark.parametrize("offset", ["+3h", "-3h"])
async def test_a_forgetting_erases_everything_that_was_said_before_it(
    valkey: str, tmp_path: Path, offset: str
) -> None:
    async with open_rig(valkey, tmp_path, "webhook") as rig:
        (tmp_path / ".faketimerc").write_text(offset)
        rig.environment.update(FAKED)
        rig.bot = rig.another_bot(from_scratch=True, port=rig.environment["PORT"])
        await rig.bot.start()
        anna, chat = rig.anna()
        await rig.ask(anna, chat, "My cat is called Mephisto")
        await rig.wait_until_learned(2)
        question = await ask_first(rig, anna, chat, "/forget")
        await erase(rig, anna, question, "forget.done", conversations=1, messages=2, vectors=2)
        assert b"Mephisto" not in await everything_stored(valkey)
