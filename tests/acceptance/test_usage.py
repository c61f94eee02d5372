"""`/usage` shows exactly the tokens that were billed, whatever was killed meanwhile."""

import asyncio
import math
import re

from tests.acceptance.buttons import erase_now
from tests.acceptance.memory_model import remember_with
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.acceptance.talk import ask_and_learn, wait_until_learned_from
from tests.acceptance.test_voice import spoken
from tests.servers.bot_api import Message
from tests.servers.model_api import ModelApiServer, Reply, tool_call

PRICES = "main-model 1 0.5 2; hashed-words 0.1 0 0"


def billed(server: ModelApiServer) -> int:
    """Return the tokens of all usage blocks that a server sent."""
    return sum(usage.prompt + usage.completion for usage in server.log.billed)


def totals(reply: Message) -> dict[str, int]:
    """Return the sums of `/usage` by their titles."""
    return {title: int(sum_) for title, sum_ in re.findall(r"(.+): (\d+) tokens\n", reply.text)}


async def test_a_person_sees_what_is_left_and_admins_what_their_messages_took(rig: Rig) -> None:
    ada, adas = await rig.start_with_ada(openai_embedding_model="off", user_tokens_per_day=5000)
    (anna, annas), (ben, bens) = rig.anna(), rig.ben()
    rig.script.on("sum", Reply(tool_calls=(tool_call("calculate", expression="2+2"),)), "Four.")
    await rig.ask(anna, annas, "What is the sum?")
    mine = billed(rig.model)
    await rig.ask(ben, bens, "Hello")
    left = math.ceil(100 * (5000 - mine) / 5000)
    assert 0 < left < 100
    reply = await rig.ask(anna, annas, "/usage")
    assert reply.text == sentence("usage.left", percent=left, unix=0)
    reply = await rig.ask(ada, adas, f"/usage {anna.id}")
    assert totals(reply) == {"That chat, this month": mine}
    [prompt, completion] = [
        sum(getattr(each, name) for each in rig.model.log.billed[:2])
        for name in ("prompt", "completion")
    ]
    assert f"fresh {prompt}, cached 0, output {completion}" in reply.text
    assert len(rig.requests) == 3
    group = rig.telegram.group("Club", [anna])
    assert (await rig.ask(anna, group, "/usage")).text == sentence("usage.only_private")


async def test_billed_tokens_are_counted_exactly_over_a_turn_with_a_kill(rig: Rig) -> None:
    """The kill comes while a model works; learning and search are counted, too."""
    remember_with(rig)
    ada, adas = await rig.start_with_ada(learn="state", learn_every_turns=1)
    people = [rig.person(2000 + number, f"P{number}") for number in range(3)]
    await asyncio.gather(*(ask_and_learn(rig, *each, "A note") for each in people))
    calls = Reply(tool_calls=(tool_call("calculate", expression="2+2"),))
    rig.script.on("sum", calls, Reply("Never heard.", gate=asyncio.Event()), calls, "Four.")
    person, chat = people[0]
    seen = len(rig.bot.log)
    said = await person.say(chat, "What is the sum?")
    await rig.wait_until_asked("sum", times=2)
    await rig.restart()
    assert (await chat.wait_for_reply(after=said)).text == "Four."
    await wait_until_learned_from(rig, chat, seen)
    reply = await rig.ask(ada, adas, "/usage")
    assert totals(reply)["The whole bot, this month"] == billed(rig.model)
    for part in ("Learning", "Search"):
        assert re.search(f"{part}: [1-9]", reply.text)


async def test_admins_see_the_whole_bot_and_its_costs_without_who_was_forgotten(rig: Rig) -> None:
    ada, adas = await rig.start_with_ada(
        openai_model="main-model", prices=PRICES, budget_per_month=1, openai_embedding_model="off"
    )
    anna, annas = rig.anna()
    assert (await rig.ask(ada, adas, "/usage")).text == sentence("usage.nothing")
    await rig.ask(anna, annas, "Hello")
    await rig.ask(ada, adas, "Hello")
    reply = await rig.ask(ada, adas, "/usage")
    sums = [usage.prompt + usage.completion for usage in rig.model.log.billed]
    assert totals(reply)["The whole bot, this month"] == sum(sums)
    cost = sum(usage.prompt + 2 * usage.completion for usage in rig.model.log.billed) / 1e6
    assert f"Budget: {cost:.4f} of 1.0000 (0 %)" in reply.text
    for line in (f"{anna.id}: {sums[0]}", f"{ada.id}: {sums[1]}", "Share of learning: 0 %"):
        assert line in reply.text
    assert "second model" not in reply.text
    one_chat = await rig.ask(ada, adas, f"/usage {anna.id}")
    assert totals(one_chat) == {"That chat, this month": sums[0]}
    assert (await rig.ask(anna, annas, "/usage")).text == sentence("usage.unlimited")

    await erase_now(rig, anna, annas, "/forget")
    reply = await rig.ask(ada, adas, "/usage")
    assert totals(reply)["The whole bot, this month"] == sum(sums)
    assert str(anna.id) not in reply.text
    assert sentence("usage.nobody") in reply.text
    assert reply.text.endswith(sentence("usage.ids"))


async def test_no_edit_pays_for_learning_once_the_budget_is_used_up(rig: Rig) -> None:
    remember_with(rig)
    anna, chat = await rig.start_with_anna(
        learn="facts", learn_every_turns=1, prices="gpt-5.4-mini 1000 0 0", budget_per_month=1
    )
    await rig.ask(anna, chat, "My boat is called Aurora")
    assert (await rig.ask(anna, chat, "And now?")).text == sentence("quota.budget")
    calls, seen = len(rig.model.log.billed), len(rig.bot.log)
    await anna.edit(chat.messages[0], "My boat is called Zephyr")
    await wait_until_learned_from(rig, chat, seen)
    assert len(rig.model.log.billed) == calls


async def test_what_is_heard_and_spoken_counts_in_the_budget(rig: Rig) -> None:
    ada, adas = await rig.start_with_ada(
        openai_model="main-model",
        transcription_model="ear",
        speech_model="mouth",
        prices="main-model 0 0 0; ear 0.6/min; mouth 1/kchar",
        budget_per_month="0.03",
        openai_embedding_model="off",
    )
    anna, annas = rig.anna()
    await rig.send(anna, annas, "voice", spoken("How are you?"))
    reply = await rig.ask(ada, adas, "/usage")
    # One second is heard, and "All right." is spoken.
    for line in ("heard: 1 min", "spoken: 10 characters", "Budget: 0.0200 of 0.0300 (66 %)"):
        assert line in reply.text, reply.text
    await rig.send(anna, annas, "voice", spoken("How are you?"))
    assert (await rig.ask(anna, annas, "And now?")).text == sentence("quota.budget")
    assert (await rig.ask(anna, annas, "/usage")).text == sentence("usage.no_budget")
    assert (await rig.ask(ada, adas, "Hello")).text == "All right."
