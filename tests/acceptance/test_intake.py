"""Every message is in exactly one answered turn, however it arrives (A15, A16)."""

import asyncio
from functools import partial

import pytest

from memory.store.keys import Scope
from tests.acceptance.rig import Rig
from tests.acceptance.talk import said
from tests.servers.bot_api import Chat, Person


def answered_messages(rig: Rig, chat: Chat) -> int:
    """Return how many messages of a chat were in closed turns."""
    closed = rig.bot.lines("turn closed", conversation=Scope.of_chat(chat.id).tag)
    return sum(line["messages"] for line in closed)


@pytest.mark.both_ways
async def test_a15_a_redelivered_update_is_acknowledged_at_once_and_answered_once(rig: Rig) -> None:
    """It is delivered twice again during the answer, then after it, then after a restart."""
    anna, chat = await rig.start_with_anna()
    gate = rig.script.hold("Slowly", "Done.")
    await anna.say(chat, "Slowly")
    updates = rig.telegram.updates
    update = updates.history[-1]

    async def acknowledged(times_again: int) -> None:
        await rig.telegram.wait_for(lambda: updates.pending_count == 0)
        again = partial(rig.bot.lines, "update", outcome="duplicate")
        await rig.bot.wait_until(lambda: len(again()) >= times_again)

    await rig.wait_until_asked("Slowly")
    await acknowledged(0)
    for again in (1, 2):
        await updates.redeliver(update)
        await acknowledged(again)
    assert chat.replies == []
    gate.set()
    assert (await chat.wait_for_reply()).text == "Done."
    await rig.bot.wait_for_log("turn closed")  # else the kill leaves the reply in doubt
    await updates.redeliver(update)
    await acknowledged(3)
    await rig.restart()
    await updates.redeliver(update)
    await acknowledged(4)
    await rig.ask(anna, chat, "Good night")
    assert chat.texts == ["Done.", "All right."]
    assert [request.asked for request in rig.requests] == ["Slowly", "Good night"]


@pytest.mark.both_ways
async def test_a16_many_messages_at_once_make_one_complete_history(rig: Rig) -> None:
    """Ten messages in one chat and one in each of ten others, while another is being answered."""
    anna, annas = await rig.start_with_anna()
    texts = ["Hello", "Are you there?"]
    rig.telegram.updates.hold()
    for text in texts:
        await anna.say(annas, text)
    await rig.telegram.updates.release()
    await annas.wait_for_reply()

    ben, bens = rig.ben()
    gate = rig.script.hold("Slowly", "Done.")
    await rig.say_until_asked(ben, bens, "Slowly")
    others = [rig.person(2000 + number, f"Other {number}") for number in range(10)]

    async def say_much() -> None:
        for number in range(10):
            texts.append(f"text {number}")
            await anna.say(annas, texts[-1])

    async def is_answered(person: Person, chat: Chat) -> bool:
        return (await rig.ask(person, chat, f"I am {person.id}")).text == "All right."

    all_of = asyncio.gather(*(is_answered(*other) for other in others))
    answered, _ = await asyncio.gather(all_of, say_much())
    assert answered == [True] * 10
    await rig.bot.wait_until(lambda: answered_messages(rig, annas) == len(texts))
    await rig.ask(anna, annas, "Good night")
    assert bens.replies == []
    gate.set()
    assert (await bens.wait_for_reply()).text == "Done."

    history = said(rig.requests[-1])[1:]
    asked = [words for role, words in history if role == "user"]
    assert "\n".join(asked).splitlines() == [*texts, "Good night"]
    assert len(annas.replies) == len(asked)
    assert all(len(chat.replies) == 1 for _, chat in others)
