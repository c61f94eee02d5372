"""A person who comes back after days is asked about what they left open, once."""

import asyncio
import time

from memory.behaviors.running_state import BACK
from memory.scopes.fields import STATE_LEARNER, State, Watermark
from memory.store.keys import Scope
from tests.acceptance.asking import ask_to_the_end
from tests.acceptance.buttons import shown
from tests.acceptance.planting import plant
from tests.acceptance.rig import Rig
from tests.acceptance.talk import said
from tests.servers.model_api import Reply

DAY = 86_400
STATE = State('{"open_problems": ["The tax return"]}')
ASKED = f'  {BACK} 4 days, still open: "The tax return"'


async def test_the_first_answer_after_days_asks_about_the_open_matter(webhook_rig: Rig) -> None:
    """An edit keeps the question, and so does a turn that begins again; the next turn does not."""
    rig, gate = webhook_rig, asyncio.Event()
    await rig.start(learn="state", learn_every_turns=99, learn_after_s=3_600)
    anna, chat = rig.anna()
    rig.telegram.set_clock(lambda: time.time() - 4 * DAY - 60)
    await ask_to_the_end(rig, anna, chat, "I have to do my taxes")
    await plant(rig, Scope.of_chat(chat.id), STATE, Watermark(STATE_LEARNER, 2))
    rig.telegram.set_clock(time.time)

    rig.script.on("first words", Reply("Never sent", gate=gate))
    rig.script.on("more words", "Hello Anna! Is the tax return done?")
    rig.script.on("last words", "Hello again!")
    question = await anna.say(chat, "first words")
    await rig.wait_until_asked("first words")
    await anna.edit(question, "more words")
    first = await chat.wait_for_reply(after=question)
    gate.set()
    await anna.edit(question, "last words")
    await shown(rig, first, "Hello again!")
    await ask_to_the_end(rig, anna, chat, "Thank you")
    asked = [request.memory.splitlines()[-1:] == [ASKED] for request in rig.requests]
    assert asked == [False, True, True, True, False]
    assert len({said(request)[0] for request in rig.requests}) == 1
