"""People correct themselves, or ask again: only the last words and answers count."""

import pytest

from tests.acceptance.buttons import press, shown
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.acceptance.talk import ask_fully, dialogue
from tests.acceptance.test_delivery import closed
from tests.servers.model_api import server_error

LONG = " ".join(f"Word {number} of many." for number in range(400))


async def stored(rig: Rig) -> str:
    return (await rig.stored()).decode(errors="replace")


@pytest.mark.either_way
async def test_the_last_words_are_answered_whenever_they_are_corrected(rig: Rig) -> None:
    anna, chat = await rig.start_with_anna()

    # The running question: the run is dropped, the new words are answered once.
    gate = rig.script.hold("Who built zanzibar?", "Somebody.")
    rig.script.on("Who built Venice?", "The Venetians.")
    running = await rig.say_until_asked(anna, chat, "Who built zanzibar?")
    await anna.edit(running, "Who built Venice?")
    await chat.wait_for_reply(after=running)
    await closed(rig, 1)
    gate.set()
    assert chat.texts == ["The Venetians."]

    # The answered question: its answer is edited in place, parts too many are deleted.
    rig.script.on("Tell me about quokkas", LONG)
    rig.script.on("Tell me about cats", "Cats sleep.")
    asked = await anna.say(chat, "Tell me about quokkas")
    await closed(rig, 2)
    first, *more = chat.replies[1:]
    assert len(more) > 0
    await anna.edit(asked, "Tell me about cats")
    await shown(rig, first, "Cats sleep.")
    await closed(rig, 3)
    assert chat.texts == ["The Venetians.", "Cats sleep."]
    await anna.edit(asked, "Tell me about cats")
    await anna.edit(asked, "/clear")

    # An older message: no new answer, and the one that repeats the former words is not shown again.
    await ask_fully(rig, anna, chat, "Thank you")
    await anna.edit(asked, "Tell me about dogs")
    await closed(rig, 6)
    calls = len(rig.requests)
    await ask_fully(rig, anna, chat, "Goodbye")
    assert dialogue(rig) == [
        "Who built Venice?",
        "The Venetians.",
        "Tell me about dogs",
        "[removed from memory]",
        "Thank you",
        chat.texts[2],
        "Goodbye",
    ]
    assert (len(rig.requests), len(chat.replies)) == (calls + 1, 4)
    everything = await stored(rig)
    for old in ("zanzibar", "quokka", "Word 1 of many", "about cats"):
        assert old not in everything

    # The answer to new words is stopped before its first one.
    asked = await anna.say(chat, "Where do eels live?")
    answer = await chat.wait_for_reply(after=asked)
    rig.script.on("Hello", "Hello.")
    rig.script.hold("Where do otters live?", "In rivers.")
    await anna.edit(asked, "Where do otters live?")
    await rig.wait_until_asked("Where do otters live?")
    await anna.say(chat, "/stop")
    await shown(rig, answer, sentence("stop.before"))
    await ask_fully(rig, anna, chat, "Hello")
    assert rig.requests[-1].asked.endswith("Where do otters live?\n\nHello")
    assert "eels" not in await stored(rig)


AGAIN = "Ask again"


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
    assert chat.texts == [nothing, "A new wallaby."]
    below = chat.replies[-1]
    assert below.id > retry.id
    assert below.reply_to is not None
    assert below.reply_to.text == "What is a quokka?"
    await anna.delete(below)
    await anna.say(chat, "/retry")
    await closed(rig, 4)
    assert chat.texts == [nothing, "A third kangaroo."]
    assert dialogue(rig) == ["What is a quokka?"]

    rig.model.faults.add(server_error(), times=None)
    apology = await ask_fully(rig, anna, chat, "And a numbat?")
    rig.model.faults.clear()
    assert apology.labels == [AGAIN]
    for _ in range(3):
        await press(rig, anna, apology, AGAIN)
    await shown(rig, apology, "An anteater.")
    await closed(rig, 6)
    assert chat.texts == [nothing, "A third kangaroo.", "An anteater."]
    assert chat.replies[-1].labels == []
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
    assert group.texts == [refused.text, "It is the slowest.", then.text]
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
