"""Erased text stays erased whatever was in progress, and only authorized people erase (A21)."""

import asyncio

import pytest

from memory.store.keys import Scope
from tests.acceptance.buttons import CANCEL, ERASE, erase, press, shown
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.acceptance.talk import ask_fully, dialogue
from tests.servers.bot_api import Message, Person
from tests.servers.model_api import Reply


def said_to_the_model(rig: Rig, since: int) -> str:
    """Return all text of the model requests from number `since` on."""
    return "\n".join(m.content for request in rig.requests[since:] for m in request.messages)


@pytest.mark.either_way
async def test_a21_a_confirmed_clear_wins_over_a_reply_in_progress(rig: Rig) -> None:
    await rig.start(lease_s=300)  # so no renewal tells the run that it has to end
    anna, chat = rig.anna()
    early, late = asyncio.Event(), asyncio.Event()
    rig.script.on("Tell me", Reply("An early Mephisto", gate=early), Reply("Late", gate=late))
    await rig.ask(anna, chat, "My cat is called Mephisto")
    await rig.wait_until_learned(2)
    question = await ask_fully(rig, anna, chat, "/clear")
    assert question.text == sentence("clear.ask", messages=2)
    await rig.say_until_asked(anna, chat, "Tell me about Mephisto")
    asked = len(rig.requests)
    await erase(rig, anna, question, "clear.done", messages=2, vectors=2, waiting=1)
    await rig.bot.wait_for_log("lease lost")  # at once: it shows and searches nothing any more
    early.set()
    await rig.ask(anna, chat, "Hello again")

    question = await ask_fully(rig, anna, chat, "/clear")
    await anna.say(chat, "Tell me about Mephisto")
    await rig.wait_until_asked("Tell me", times=2)
    await erase(rig, anna, question, "clear.done", messages=2, vectors=2, waiting=1)
    asked_again = len(rig.requests)
    reply = await rig.ask(anna, chat, "This one does not wait for the old reply")
    late.set()
    assert reply.text == "All right."
    await rig.bot.stop()  # gives its lease for polling back
    await rig.bot.start()
    await rig.ask(anna, chat, "What is my cat called?")

    assert [m.content for m in rig.requests[asked].messages[1:]] == ["Hello again"]
    assert "Mephisto" not in said_to_the_model(rig, asked_again)
    assert "Hello" not in said_to_the_model(rig, asked_again)
    assert {"An early Mephisto", "Late"}.isdisjoint(reply.text for reply in chat.replies)
    assert b"Mephisto" not in await rig.stored()


async def test_nothing_is_erased_without_a_valid_confirmation(rig: Rig) -> None:
    anna, chat = await rig.start_with_anna()
    await rig.ask(anna, chat, "My cat is called Mephisto")
    for command in ("/clear", "/forget"):
        question = await ask_fully(rig, anna, chat, command)
        assert await press(rig, anna, question, CANCEL) == ""
        await shown(rig, question, sentence("clear.cancelled"))
        await press(rig, anna, question, ERASE)
        await shown(rig, question, sentence("clear.expired"))
    question = await ask_fully(rig, anna, chat, "/clear")
    # The hour passes in which the question may be answered.
    confirm = rig.keys.scope(Scope.of_chat(chat.id)).confirm
    assert 0 < await rig.redis("TTL", confirm) <= 3600
    await rig.redis("DEL", confirm)
    await press(rig, anna, question, ERASE)
    await shown(rig, question, sentence("clear.expired"))
    await rig.ask(anna, chat, "What is my cat called?")
    assert rig.requests[-1].messages[1].content == "My cat is called Mephisto"


async def test_a_command_that_waits_for_an_answer_gets_a_reaction_at_once(rig: Rig) -> None:
    gate = rig.script.hold("Tell me", "A long tale")
    anna, chat = await rig.start_with_anna()
    await rig.say_until_asked(anna, chat, "Tell me")
    wish = await anna.say(chat, "/clear")
    await rig.telegram.wait_for(lambda: chat.reaction(wish, rig.telegram.bot) == ("👀",))
    gate.set()
    asked = sentence("clear.ask", messages=2)
    await rig.telegram.wait_for(lambda: chat.texts[1:] == [asked])


async def test_only_admins_clear_a_group(rig: Rig) -> None:
    await rig.start()
    (anna, _), (ben, _) = rig.anna(), rig.ben()
    owner, deputy = rig.person(1003, "Olga")[0], rig.person(1004, "Dora")[0]
    group = rig.telegram.group("Club", [anna, ben], admins=[owner, deputy])
    await rig.ask(anna, group, "@ricordo_bot our cat is called Mephisto")
    refused = sentence("clear.only_group_admins")
    assert (await rig.ask(anna, group, "/clear")).text == refused
    for command in ("/clear", "/forget"):
        nobody = await rig.ask(owner, group, command, speaking_as=group)
        assert nobody.text == sentence("error.anonymous_admin")
    assert len(rig.bot.lines("group command refused")) == 2

    question = await ask_fully(rig, deputy, group, "/clear")
    assert question.text == sentence("clear.ask_group", messages=2)
    not_yours = sentence("clear.not_yours")
    assert await press(rig, anna, question, ERASE) == not_yours
    assert await press(rig, owner, question, CANCEL) == not_yours
    forgetting = await ask_fully(rig, ben, group, "/forget")
    assert await press(rig, anna, forgetting, ERASE) == not_yours
    await rig.ask(anna, group, "@ricordo_bot what is our cat called?")
    assert "Mephisto" in rig.requests[-1].messages[1].content
    await rig.wait_until_learned(4)

    await erase(rig, owner, question, "clear.done", messages=4, vectors=4, waiting=0)
    await rig.ask(anna, group, "@ricordo_bot and now?")
    assert dialogue(rig) == ["Anna: and now?"]
    assert b"Mephisto" not in await rig.stored()


async def test_a21_forgetting_a_person_keeps_what_others_wrote(rig: Rig) -> None:
    await rig.start()
    (anna, annas), (ben, _) = rig.anna(), rig.ben()
    group = rig.telegram.group("Club", [anna, ben])
    gate = rig.script.hold("do we eat", "Ratatouille!", "Pancakes!")
    await rig.ask(anna, annas, "My secret colour is ultramarine")
    await rig.ask(anna, group, "@ricordo_bot I like ratatouille")
    await rig.ask(ben, group, "@ricordo_bot I like pancakes")
    await rig.wait_until_learned(6)
    question = await ask_fully(rig, anna, annas, "/forget")
    assert question.text == sentence("forget.ask")
    bens = await ben.say(group, "@ricordo_bot what do we eat?")
    await rig.wait_until_asked("do we eat")
    assert "ratatouille" in said_to_the_model(rig, -1)

    await erase(rig, anna, question, "forget.done", conversations=2, messages=4, vectors=4)
    gate.set()
    assert (await group.wait_for_reply(after=bens)).text == "Pancakes!"
    assert "pancakes" in said_to_the_model(rig, -1)
    assert "ratatouille" not in said_to_the_model(rig, -1)
    assert "Ratatouille!" not in group.texts
    stored = await rig.stored()
    left = [w for w in (b"ultramarine", b"ratatouille", b"Anna", b"pancakes") if w in stored]
    assert left == [b"pancakes"]
    await rig.ask(anna, annas, "What is my secret colour?")
    assert dialogue(rig) == ["What is my secret colour?"]


async def press_and_see(rig: Rig, person: Person, message: Message, button: str) -> None:
    """Press a button and wait until the bot shows a result."""
    edits = len(rig.telegram.calls_to("editMessageText"))
    assert await press(rig, person, message, button) == ""
    await rig.telegram.wait_for(lambda: len(rig.telegram.calls_to("editMessageText")) > edits)


async def test_cancel_after_an_erasure_says_what_was_erased(rig: Rig) -> None:
    anna, chat = await rig.start_with_anna()
    said = await anna.say(chat, "My cat is called Mephisto")
    await chat.wait_for_reply(after=said)
    await rig.wait_until_learned(2)
    two = {"messages": 2, "vectors": 2, "learned": 0}
    for command, reply_to, key, counts in (
        ("/forget", said, "forget.message_done", two),
        ("/clear", None, "clear.done", {"messages": 0, "vectors": 0, "waiting": 0, "learned": 0}),
        ("/forget", None, "forget.done", {"conversations": 1, "messages": 0, "vectors": 0}),
    ):
        question = await ask_fully(rig, anna, chat, command, reply_to=reply_to)
        await erase(rig, anna, question, key, **counts)
        await press_and_see(rig, anna, question, CANCEL)
        await shown(rig, question, sentence(key, **{"learned": 0, **counts}))
