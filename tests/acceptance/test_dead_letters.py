"""A turn that keeps failing becomes a dead letter: its chat goes on, and its person may retry."""

import asyncio

from tests.acceptance.buttons import press, shown
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.acceptance.talk import dialogue
from tests.servers.model_api import Reply


async def test_a_message_that_crashes_the_process_becomes_a_dead_letter_and_can_be_retried(
    rig: Rig,
) -> None:
    (anna, annas) = rig.anna()
    await rig.start()
    deadly = Reply("Never said.", gate=asyncio.Event())
    rig.script.on("Deadly", deadly, deadly, "Here is your answer.")
    said = await anna.say(annas, "Deadly words")
    for times in (1, 2):
        await rig.wait_until_asked("Deadly", times=times)
        await rig.restart()
    turn = str(rig.telegram.updates.history[-1].id)
    apology = await annas.wait_for_reply(after=said)
    assert apology.text == sentence("error.apology", reference=turn)
    await rig.ask(anna, annas, "Hello")
    assert dialogue(rig) == ["Hello"]
    # While the lease is held under which the turn was closed, its letter stays where it is.
    await rig.bot.wait_until(lambda: len(rig.bot.lines("turn closed")) == 2)

    await press(rig, anna, apology, sentence("buttons.again"))
    await shown(rig, apology, sentence("retry.begun"))
    await rig.telegram.wait_for(lambda: annas.replies[-1].text == "Here is your answer.")
    await rig.ask(anna, annas, "And now?")
    wanted = ["Hello", "All right.", "Deadly words", "Here is your answer.", "And now?"]
    assert dialogue(rig) == wanted
    assert len(rig.requests) == 5
