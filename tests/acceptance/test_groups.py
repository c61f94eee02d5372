"""In groups the bot answers messages to it, in their topic; groups become supergroups (A19-A20)."""

from collections.abc import Sequence

import pytest

from tests.acceptance.buttons import erase
from tests.acceptance.rig import US, Rig
from tests.acceptance.sentences import help_in_group
from tests.acceptance.talk import ask_fully, dialogue
from tests.servers.bot_api import Waiting


@pytest.mark.either_way
async def test_a19_in_a_group_only_messages_to_the_bot_are_answered(rig: Rig) -> None:
    await rig.start()
    anna, ben = rig.anna()[0], rig.ben()[0]
    robot = rig.telegram.user(1500, "Robot", username="otherbot", is_bot=True)
    group = rig.telegram.group("Club", [anna, ben, robot])
    await anna.say(group, "The safe's number is tangerine")
    await robot.say(group, f"{US} the safe's number is tangerine")
    await ben.say(group, "/help@otherbot tangerine")
    await ben.say(group, "/unknown_here tangerine")
    others = await ben.say(group, "tangerine?")
    await anna.say(group, "tangerine!", reply_to=others)
    mention = await anna.say(group, f"{US} our boat is called Aurora")
    first = await group.wait_for_reply(after=mention)
    assert dialogue(rig) == ["Anna: our boat is called Aurora"]
    reply = await ben.say(group, "And what colour is it?", reply_to=first)
    await group.wait_for_reply(after=reply)
    assert dialogue(rig) == [
        "Anna: our boat is called Aurora",
        "All right.",
        "Ben: And what colour is it?",
    ]
    in_passing = await ben.say(group, f"It is blue, isn't it, {US}?")
    await group.wait_for_reply(after=in_passing)
    assert dialogue(rig)[-1] == f"Ben: It is blue, isn't it, {US}?"
    asked = await anna.say(group, "/ask Can it sail?")
    await group.wait_for_reply(after=asked)
    assert dialogue(rig)[-1] == "Anna: Can it sail?"
    help_texts = []
    for command in ("/help", f"/help{US}"):
        helped = await rig.ask(ben, group, command)
        help_texts.append(helped.text)
        assert helped.reply_to
        assert helped.reply_to.text == command
    assert help_texts == [help_in_group()] * 2

    assert [each.reply_to for each in group.replies][:4] == [mention, reply, in_passing, asked]
    assert len(group.replies) == 6
    assert b"tangerine" not in await rig.stored()


@pytest.mark.either_way
async def test_a20_a_group_keeps_its_memory_when_it_becomes_a_supergroup(rig: Rig) -> None:
    ada, adas = await rig.start_with_ada()
    anna, ben = rig.anna()[0], rig.ben()[0]
    group = rig.telegram.group("Club", [ben], admins=[anna], basic=True)
    await rig.ask(anna, group, f"{US} our boat is called Aurora")
    await rig.wait_until_learned(2)
    supergroup = await anna.migrate(group)
    await rig.ask(ben, supergroup, f"{US} what is our boat called?")
    expected = ["Anna: our boat is called Aurora", "All right.", "Ben: what is our boat called?"]
    assert dialogue(rig) == expected
    await rig.wait_until_learned(4)
    await rig.restart()
    await rig.ask(ben, supergroup, f"{US} and who has said so?")
    assert dialogue(rig)[:3] == expected
    await rig.wait_until_learned(6)

    inspected = await rig.ask(ada, adas, f"/inspect {supergroup.id}")
    assert "Messages: 6" in inspected.text
    question = await ask_fully(rig, anna, supergroup, "/clear")
    await erase(rig, anna, question, "clear.done", messages=6, vectors=6, waiting=0)
    await rig.ask(ben, supergroup, f"{US} what is our boat called?")
    assert dialogue(rig) == ["Ben: what is our boat called?"]
    await rig.ask(ben, supergroup, f"{US} it is called Borealis")
    await rig.wait_until_learned(10)
    question = await ask_fully(rig, ada, adas, f"/clear_memory {supergroup.id}")
    counts = {"conversations": 1, "messages": 4, "vectors": 4}
    await erase(rig, ada, question, "admin.clear_memory_done", **counts)
    stored = await rig.stored()
    assert (b"Aurora" in stored, b"Borealis" in stored) == (False, False)


async def test_a20_a_message_that_reached_the_new_chat_first_is_answered_once(rig: Rig) -> None:
    """The turn that had begun in the new chat starts again with the old group's memory."""
    await rig.start()
    anna = rig.anna()[0]
    group = rig.telegram.group("Club", admins=[anna], basic=True)
    gate = rig.script.hold("is it called", "I do not know.", "Aurora.")
    await rig.ask(anna, group, f"{US} our boat is called Aurora")
    rig.telegram.updates.hold()
    supergroup = await anna.migrate(group)
    said = await anna.say(supergroup, f"{US} what is it called?")
    *moves, question = rig.telegram.updates.history[-3:]

    def only_the_question(waiting: Sequence[Waiting]) -> list[Waiting]:
        return [each for each in waiting if each.update == question]

    await rig.telegram.updates.release(only_the_question)
    await rig.wait_until_asked("is it called")
    assert dialogue(rig) == ["Anna: what is it called?"]
    for move in moves:
        await rig.telegram.updates.redeliver(move)
    await rig.bot.wait_for_log("group migrated")
    gate.set()
    reply = await supergroup.wait_for_reply(after=said)
    assert reply.text == "Aurora."
    assert dialogue(rig)[0] == "Anna: our boat is called Aurora"
    await rig.ask(anna, supergroup, f"{US} thank you")
    assert supergroup.texts == ["Aurora.", "All right."]
