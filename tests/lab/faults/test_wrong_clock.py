"""A bot whose clock is hours off from Telegram's."""

from pathlib import Path

import pytest

from tests.acceptance.buttons import erase
from tests.acceptance.rig import open_rig
from tests.acceptance.talk import ask_fully
from tests.acceptance.test_reminders import have_called, let_be_due, remind
from tests.acceptance.test_tasks import WEEKLY, mark, task
from tests.lab.faults.clocks import FAKED, MISSING
from tests.stored import everything_stored


@pytest.mark.trial
@pytest.mark.skipif(bool(MISSING), reason=MISSING)
@pytest.mark.parametrize("offset", ["+3h", "-3h"])
async def test_what_is_due_comes_at_its_time_and_a_forgetting_erases_everything_said_before_it(
    valkey: str, tmp_path: Path, offset: str
) -> None:
    async with open_rig(valkey, tmp_path, "webhook") as rig:
        (tmp_path / ".faketimerc").write_text(offset)
        rig.environment.update(FAKED)
        anna, chat = await rig.start_with_anna(openai_embedding_model="off")
        await rig.ask(anna, chat, "My cat is called Mephisto")
        await rig.bot.wait_for_log("turn closed")
        calls = task("Name my cat", **WEEKLY), remind("Tea", **WEEKLY)
        await have_called(rig, anna, chat, "Weekly", *calls)
        rig.script.on("⏰ Name my cat", "Mephisto.")
        await let_be_due(rig, chat)
        await rig.telegram.wait_for(lambda: len(chat.replies) == 4)
        sent = {each.text for each in chat.replies[2:]}
        assert sent == {"⏰ Tea", f"Mephisto.\n\n{mark('Name my cat')}"}
        question = await ask_fully(rig, anna, chat, "/forget")
        await erase(rig, anna, question, "forget.done", conversations=1, messages=6, vectors=0)
        assert b"Mephisto" not in await everything_stored(valkey)
