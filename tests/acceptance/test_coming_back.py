"""A person who comes back is asked about what they left open, and about facts that have aged."""

import time
from dataclasses import replace

from memory.behaviors.running_state import BACK
from memory.scopes.fields import STATE_LEARNER, State, Watermark
from memory.store.keys import Scope
from tests.acceptance.buttons import press, shown
from tests.acceptance.planting import fact, plant, stored_memory
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.acceptance.talk import ask_and_learn, ask_fully, said

DAY = 86_400
STATE = State('{"open_problems": ["The tax return"]}')
ASKED = f'  {BACK} 4 days, still open: "The tax return"'


async def test_the_first_answer_after_days_asks_about_the_open_matter(rig: Rig) -> None:
    """An edit keeps the question, and so does a turn that begins again; the next turn does not."""
    anna, chat = await rig.start_with_anna(learn="state", learn_every_turns=99, learn_after_s=3_600)
    rig.telegram.set_clock(lambda: time.time() - 4 * DAY - 60)
    await ask_fully(rig, anna, chat, "I have to do my taxes")
    await plant(rig, Scope.of_chat(chat.id), STATE, Watermark(STATE_LEARNER, 2))
    rig.telegram.set_clock(time.time)

    gate = rig.script.hold("first words", "Never sent")
    rig.script.on("more words", "Hello Anna! Is the tax return done?")
    rig.script.on("last words", "Hello again!")
    question = await rig.say_until_asked(anna, chat, "first words")
    await anna.edit(question, "more words")
    first = await chat.wait_for_reply(after=question)
    gate.set()
    await anna.edit(question, "last words")
    await shown(rig, first, "Hello again!")
    await ask_fully(rig, anna, chat, "Thank you")
    asked = [request.memory.splitlines()[-1:] == [ASKED] for request in rig.requests]
    assert asked == [False, True, True, True, False]
    assert len({said(request)[0] for request in rig.requests}) == 1


async def test_an_answer_asks_whether_an_old_fact_still_holds_also_after_a_crash(rig: Rig) -> None:
    """Its question comes once, with the answer. The next turn asks about no second fact."""
    anna, chat = await rig.start_with_anna(learn="facts", learn_every_turns=99, learn_after_s=3_600)
    here, mine = Scope.of_chat(chat.id), Scope.of_person(anna.id)
    rig.script.on("I live", "Nice.")
    rig.script.on("bus", "The bus in Graz leaves at nine, from Siemens.")
    await ask_and_learn(rig, anna, chat, "I live in Graz")
    told = (fact(text, 1, here, anna.id) for text in ("Lives in Graz.", "Works at Siemens."))
    await plant(rig, mine, *(replace(each, changes=True) for each in told))
    asked = sentence("consent.ask_still", text="Lives in Graz.")
    await ask_and_learn(rig, anna, chat, "When is my bus?")
    await rig.restart()
    await ask_fully(rig, anna, chat, "And the next bus?")
    [question] = [message for message in chat.messages if message.text == asked]
    assert sum("Siemens.”" in message.text for message in chat.messages) == 0
    pressed_at = int(time.time())
    await press(rig, anna, question, "Yes")
    await shown(rig, question, sentence("consent.confirmed"))
    first, second = (await stored_memory(rig, mine)).facts
    assert pressed_at <= first.confirmed_at <= time.time()
    assert (first.text, second.confirmed_at) == ("Lives in Graz.", 0)
