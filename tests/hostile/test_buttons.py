"""Buttons of a changed client: their data is neither logged nor trusted."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.acceptance.buttons import ERASE, ask_first, press, shown
from tests.acceptance.rig import Rig, open_rig
from tests.acceptance.sentences import sentence
from tests.servers.bot_api import Button, Message, Person

ADMIN_ID = 1009


@pytest.fixture
async def rig(launcher: None, valkey: str, tmp_path: Path) -> AsyncIterator[Rig]:  # noqa: ARG001
    async with open_rig(valkey, tmp_path, "webhook") as opened:
        yield opened


async def press_forged(rig: Rig, person: Person, message: Message, forged: str) -> str:
    return await press(rig, person, replace(message, keyboard=((Button("x", forged),),)), "x")


def action_of(question: Message) -> str:
    (button,) = [each for row in question.keyboard for each in row if each.text == ERASE]
    return button.callback_data


async def test_the_text_in_a_forged_button_is_not_logged(rig: Rig) -> None:
    await rig.start()
    anna, annas = rig.anna()
    message = await rig.ask(anna, annas, "/privacy")
    await press_forged(rig, anna, message, "SECRETQZ words of mine:1")
    line = await rig.bot.wait_for_log("button refused")
    assert line["verb"] == "unknown"
    assert "SECRETQZ" not in "\n".join(rig.bot.raw)


async def test_an_admins_button_erases_what_the_question_named_and_not_what_the_button_says(
    rig: Rig,
) -> None:
    await rig.start(admin_user_ids=ADMIN_ID)
    ada, adas = rig.person(ADMIN_ID, "Ada")
    (anna, annas), (ben, bens) = rig.anna(), rig.ben()
    for person, chat in ((anna, annas), (ben, bens)):
        await rig.ask(person, chat, "My cat is called Mephisto")
    await rig.wait_until_learned(4)
    question = await ask_first(rig, ada, adas, f"/clear_memory {bens.id}")
    nonce = action_of(question).split(":")[1]
    await press_forged(rig, ada, question, f"admin:{nonce}:all")
    receipt = sentence("admin.clear_memory_done", conversations=1, messages=2, vectors=2, learned=0)
    await shown(rig, question, receipt)


async def test_a_used_nonce_confirms_nothing_for_other_people_or_other_questions(rig: Rig) -> None:
    """Before the fix, a used nonce let anyone skip the question before their own erasure."""
    await rig.start()
    anna, _ = rig.anna()
    ben, _ = rig.ben()
    group = rig.telegram.group("Club", [ben], [anna])
    question = await ask_first(rig, anna, group, "/clear")
    nonce = action_of(question).split(":")[1]
    await press(rig, anna, question, ERASE)
    for person, forged in ((ben, f"forget:{nonce}"), (anna, f"forget:{nonce}")):
        popped_up = await press_forged(rig, person, question, forged)
        assert popped_up == sentence("clear.not_yours")


async def test_an_admin_need_not_be_in_the_list_of_allowed_people(rig: Rig) -> None:
    await rig.start(admin_user_ids=ADMIN_ID, allowed_user_ids="1001")
    ada, adas = rig.person(ADMIN_ID, "Ada")
    ben, bens = rig.ben()
    assert (await rig.ask(ada, adas, "hello")).text == "All right."
    refused = await rig.ask(ben, bens, "hello")
    assert refused.text == sentence("error.stranger", id=ben.id)
    assert [button.copies for row in refused.keyboard for button in row] == [str(ben.id)]
