"""A modified client may send any callback data: it is not trusted or logged, and blocks nothing."""

from dataclasses import replace

import pytest

from tests.acceptance.buttons import ERASE, press, shown
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.acceptance.talk import ask_fully
from tests.servers.bot_api import Button, Message, Person

NEVER_OURS = (
    "SECRETQZ words of mine:1",
    "mem:xk0.0.0",
    "mem:xk99999999999999999999.0.0",
    "mem:xf1,2.0.0",
    "mem:xf-.0.0",
    "mem:xf.0.0",
    "mem:rf1.0.0",
    "mem:x.0.0",
    "doc:r1.0.0",
    "mem:.0.0",
    "mem:",
    "yes:",
    "no:",
    "yes:nothing",
    "clear:",
    "misheard:",
    "misheard:1.1001",
    "misheard:x.1001.1",
    "misheard:99999999999999999999.1001.1",
    "run_tool:",
    "import:",
    "look:",
    "look:x",
    "why:1:xk-1.0.0",
    "nonsense",
    "letter:",
    "again:nowhere",
)


async def press_forged(rig: Rig, person: Person, message: Message, forged: str) -> str:
    """Press a button that the bot never showed below its message; return what popped up."""
    return await press(rig, person, replace(message, keyboard=((Button("x", forged),),)), "x")


@pytest.mark.either_way
async def test_forged_callback_data_is_refused_at_once(rig: Rig) -> None:
    anna, annas = await rig.start_with_anna()
    for forged in NEVER_OURS:
        message = await rig.ask(anna, annas, "/privacy")
        on_top = await press_forged(rig, anna, message, forged)
        # A button that no handler knows may be of a newer release, so its message stays.
        assert on_top in ("", sentence("clear.expired"))
        await shown(rig, message, message.text if on_top else sentence("clear.expired"))
    warned = [line["event"] for line in rig.bot.log if line.get("level") in ("warning", "error")]
    assert set(warned) <= {"event loop blocked"}  # as on any busy machine
    assert (await rig.bot.wait_for_log("button refused"))["verb"] == "unknown"
    assert "SECRETQZ" not in "\n".join(rig.bot.raw)
    assert (await rig.ask(anna, annas, "Are you there?")).text == "All right."


async def test_an_admins_button_erases_what_the_question_named_and_not_what_the_button_says(
    rig: Rig,
) -> None:
    ada, adas = await rig.start_with_ada()
    (anna, annas), (ben, bens) = rig.anna(), rig.ben()
    for person, chat in ((anna, annas), (ben, bens)):
        await rig.ask(person, chat, "My cat is called Mephisto")
    await rig.wait_until_learned(4)
    question = await ask_fully(rig, ada, adas, f"/clear_memory {bens.id}")
    [data] = [each.callback_data for each in question.keyboard[0] if each.text == ERASE]
    nonce = data.split(":")[1]
    await press_forged(rig, ada, question, f"admin:{nonce}:all")
    receipt = sentence("admin.clear_memory_done", conversations=1, messages=2, vectors=2, learned=0)
    await shown(rig, question, receipt)


async def test_an_admin_need_not_be_in_the_list_of_allowed_people(rig: Rig) -> None:
    ada, adas = await rig.start_with_ada(allowed_user_ids="1001")
    ben, bens = rig.ben()
    assert (await rig.ask(ada, adas, "hello")).text == "All right."
    refused = await rig.ask(ben, bens, "hello")
    assert refused.text == sentence("error.stranger", id=ben.id)
    assert [button.copies for row in refused.keyboard for button in row] == [str(ben.id)]
