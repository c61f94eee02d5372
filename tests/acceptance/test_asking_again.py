"""A question is answered again: by `/retry`, by the button under an apology, after an edit."""

import pytest

from tests.acceptance.buttons import press, shown
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.acceptance.talk import ask_fully, dialogue
from tests.acceptance.test_delivery import closed
from tests.acceptance.test_edits import replies, stored
from tests.servers.bot_api import Message
from tests.servers.model_api import server_error

AGAIN = "Ask again"


def buttons(message: Message) -> list[str]:
    return [button.text for row in message.keyboard for button in row]


@pytest.mark.either_way
async def test_a_retry_is_answered_below_and_a_pressed_button_in_place(rig: Rig) -> None:
    anna, chat = await rig.start_with_anna()
    nothing = (await rig.ask(anna, chat, "/retry")).text
    assert nothing == sentence("retry.nothing")
    rig.script.on("numbat", "An anteater.")
    rig.script.on("quokka", "An old quokka.", "A **new** wallaby.", "A third kangaroo.")
    await ask_fully(rig, anna, chat, "What is a quokka?")
    retry = await anna.say(chat, "/retry")
    await closed(rig, 3)
    assert replies(chat) == [nothing, "A new wallaby."]
    below = chat.replies[-1]
    assert below.id > retry.id
    assert below.reply_to is not None
    assert below.reply_to.text == "What is a quokka?"
    await anna.delete(below)
    await anna.say(chat, "/retry")
    await closed(rig, 4)
    assert replies(chat) == [nothing, "A third kangaroo."]
    assert dialogue(rig) == ["What is a quokka?"]

    rig.model.faults.add(server_error(), times=None)
    apology = await ask_fully(rig, anna, chat, "And a numbat?")
    rig.model.faults.clear()
    assert buttons(apology) == [AGAIN]
    for _ in range(3):
        await press(rig, anna, apology, AGAIN)
    await shown(rig, apology, "An anteater.")
    await closed(rig, 6)
    assert replies(chat) == [nothing, "A third kangaroo.", "An anteater."]
    assert buttons(chat.replies[-1]) == []
    assert dialogue(rig) == ["What is a quokka?", "A third kangaroo.", "And a numbat?"]
    everything = await stored(rig)
    assert "old quokka" not in everything
    assert "wallaby" not in everything
    assert everything.count("And a numbat?") == 1


async def test_in_a_group_who_asked_may_correct_it_and_also_an_admin_have_it_answered_again(
    rig: Rig,
) -> None:
    await rig.start_apart(workers=2)
    anna, ben, carl = rig.anna()[0], rig.ben()[0], rig.person(1003, "Carl")[0]
    group = rig.telegram.group("Club", [anna, ben], admins=[carl])
    rig.script.on("sloth", "It is slow.")
    rig.script.on("snail", "It is slower.", "It is the slowest.")
    plain = await anna.say(group, "How fast is a turtle?")
    asked = await anna.say(group, "@ricordo_bot How fast is a sloth?")
    answer = await group.wait_for_reply(after=asked)
    await anna.edit(plain, "How fast is a tortoise?")
    await anna.edit(asked, "@ricordo_bot How fast is a snail?")
    await shown(rig, answer, "It is slower.")
    refused = await rig.ask(ben, group, "/retry")
    assert refused.text == sentence("retry.not_yours")
    again = await rig.ask(carl, group, "/retry")
    assert again.text == "It is the slowest."
    assert again.reply_to is not None
    assert again.reply_to.id == asked.id
    then = await rig.ask(carl, group, "/start")
    assert replies(group) == [refused.text, "It is the slowest.", then.text]
    assert rig.requests[-1].asked == "Anna: How fast is a snail?"
    assert len(rig.requests) == 3
    everything = await stored(rig)
    for gone in ("sloth", "turtle", "tortoise", "It is slower"):
        assert gone not in everything


@pytest.mark.either_way
async def test_what_stands_behind_new_and_retry_is_answered(rig: Rig) -> None:
    anna, chat = await rig.start_with_anna()
    rig.script.on("shorter", "A bird.")
    rig.script.on("puffin", "A puffin is a small bird of the sea.")
    await ask_fully(rig, anna, chat, "What is a puffin?")
    assert (await ask_fully(rig, anna, chat, "/retry shorter, please")).text == "A bird."
    rig.script.on("How are you?", "Fine!")
    rig.script.on("And you?", "Fine, too!")
    assert (await ask_fully(rig, anna, chat, "/new How are you?")).text == "Fine!"
    assert dialogue(rig) == ["How are you?"]
    assert (await ask_fully(rig, anna, chat, "And you?")).text == "Fine, too!"
    assert dialogue(rig) == ["How are you?", "Fine!", "And you?"]
    assert (await stored(rig)).count("puffin?") == 1

    await rig.ask(anna, chat, "/off")
    await ask_fully(rig, anna, chat, "A secret about puffins.")
    await ask_fully(rig, anna, chat, "/new How are you?")
    assert dialogue(rig) == ["How are you?"]
    assert "secret" not in await stored(rig)
