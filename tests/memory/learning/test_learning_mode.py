"""How facts are learned: by itself, after a question for each, or only on request."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from time import time

import pytest

from memory.behaviors.context import Asker
from memory.behaviors.statements import Mode, due_cards, mode_in, set_mode
from memory.behaviors.user_facts import UserFacts
from memory.erasure.questions import NotConfirmed
from memory.memory import Memory
from memory.queue.open_turn import Closing
from memory.scopes.changes import Write
from memory.scopes.fields import UNASKED, ToolWrites, WaitingWrite
from memory.scopes.writes import Remember, to_json
from memory.store.keys import Scope
from tests.memory.erasure.test_rewriting import asking
from tests.memory.learning.scripted import ScriptedModel, talk, talk_and_learn
from tests.memory.turns import ANN, ANNS, GROUP, HERE, clear

SetMode = Callable[[Scope, Mode], Awaitable[None]]


@pytest.fixture
def modes(memory: Memory, model: ScriptedModel) -> SetMode:
    memory.enable_learning([UserFacts(memory.scopes, memory.tokens)], model)
    return partial(set_mode, memory.scopes)


def facts(*texts: str, seq: int = 1) -> dict[str, object]:
    return {"facts": {"facts": [{"text": text, "message": seq} for text in texts]}}


async def known(memory: Memory) -> list[str]:
    return [fact.text for fact in (await memory.scopes.read(ANNS)).facts]


async def cards(memory: Memory, sender: int = ANN) -> list[Remember]:
    here, person = await memory.scopes.read(HERE), await memory.scopes.read(ANNS)
    return due_cards(here, person, sender, time())


async def show(memory: Memory, *shown: Remember) -> None:
    """Run a turn whose answer shows cards, and what follows it."""
    writes = to_json([replace(each, text="") for each in shown])
    await talk_and_learn(memory, "go on", closing=Closing(writes=writes))


async def test_in_explicit_mode_only_what_a_tool_was_asked_to_keep_becomes_a_fact(
    memory: Memory, model: ScriptedModel, modes: SetMode
) -> None:
    """Nothing of that time is learned later, nor by a batch under way."""
    model.parts = facts("sails")
    model.meanwhile = partial(modes, HERE, "explicit")
    await talk_and_learn(memory, "one", "two", "three", "four")
    asked = to_json([Remember("rows", sender_id=ANN)])
    await talk_and_learn(memory, "five", closing=Closing(writes=asked))
    assert (len(model.asked), await known(memory)) == (2, ["rows"])
    await modes(HERE, "auto")
    await memory.learn(HERE)
    assert await known(memory) == ["rows"]


async def test_a_wish_is_pinned_whether_a_tool_keeps_it_or_a_person_agrees_to_it(
    memory: Memory, model: ScriptedModel, modes: SetMode
) -> None:
    async def wishes() -> list[tuple[str, bool]]:
        kept = (await memory.scopes.read(ANNS)).facts
        return [(fact.text, fact.is_pinned) for fact in kept if fact.is_current]

    await modes(HERE, "ask")
    wish = {"text": "Wants French.", "message": 1, "lasts": "wish"}
    model.parts = {"facts": {"facts": [wish]}}
    kept = Remember("Wants jokes.", sender_id=ANN, is_pinned=True)
    await talk(memory, "one", "two", "three")
    await talk_and_learn(memory, "four", closing=Closing(writes=to_json([kept])))
    assert await wishes() == [("Wants jokes.", True)]
    [card] = await cards(memory)
    await show(memory, card)
    await memory.tool_writer.answer(HERE, card.nonce, Asker(ANN, is_group=False), agrees=True)
    assert await wishes() == [("Wants jokes.", True), ("Wants French.", True)]
    # A person unpins one of them; what replaces it is not pinned either.
    await memory.correcting.pin_fact(HERE, 1, is_pinned=False)
    other = Remember("Wants puns.", 1, sender_id=ANN, is_pinned=True)
    await talk_and_learn(memory, "puns", closing=Closing(writes=to_json([other])))
    assert ("Wants puns.", False) in await wishes()


async def test_the_mode_of_a_group_survives_a_clear(memory: Memory, modes: SetMode) -> None:
    await modes(GROUP, "explicit")
    await talk(memory, "one", conversation=GROUP)
    await clear(memory, 10, GROUP)
    assert mode_in(await memory.scopes.read(GROUP)) == "explicit"


async def test_in_ask_mode_at_most_three_cards_are_open_and_a_yes_keeps_the_fact(
    memory: Memory, model: ScriptedModel, modes: SetMode
) -> None:
    await modes(HERE, "ask")
    model.answers = [facts(*(f"likes {name}" for name in ("ab", "bc", "cd", "de")))]
    await talk_and_learn(memory, "one", "two", "three", "four")
    assert await known(memory) == []
    shown = await cards(memory)
    assert [each.text for each in shown] == ["likes ab", "likes bc", "likes cd"]
    assert await cards(memory, sender=8) == []

    ann = Asker(ANN, is_group=False)
    writes = to_json([replace(each, text="") for each in shown])
    await talk(memory, "go on", closing=Closing(writes=writes))
    assert await cards(memory) == []
    await memory.learn(HERE)
    assert await cards(memory) == []
    first, second, third = (each.nonce for each in shown)
    assert await memory.tool_writer.answer(HERE, first, ann, agrees=True) == "kept"
    assert await memory.tool_writer.answer(HERE, second, ann, agrees=False) == "not_kept"
    edited = await memory.tool_writer.answer(HERE, third, ann, agrees=True, text="likes CD")
    assert (edited, await known(memory)) == ("kept", ["likes ab", "likes CD"])
    assert [fact.sources[0].seq for fact in (await memory.scopes.read(ANNS)).facts] == [1, 1]
    assert [each.text for each in await cards(memory)] == ["likes de"]
    await modes(HERE, "auto")
    assert await cards(memory) == []


async def test_a_card_below_an_answer_that_is_replaced_is_asked_once_more(
    memory: Memory, model: ScriptedModel, modes: SetMode
) -> None:
    await modes(HERE, "ask")
    model.answers = [facts("likes quokkas")]
    await talk_and_learn(memory, "one", "two", "three", "four")
    [card] = shown = await cards(memory)
    await show(memory, card)
    assert await cards(memory) == []
    _, change = await asking(memory)
    await memory.forgetting.take_out(HERE, [9, 10], change)
    assert await cards(memory) == shown
    ann = Asker(ANN, is_group=False)
    assert await memory.tool_writer.answer(HERE, card.nonce, ann, agrees=True) == "kept"
    assert await known(memory) == ["likes quokkas"]


async def test_a_card_expires_after_a_day_and_goes_with_its_message(
    memory: Memory, model: ScriptedModel, modes: SetMode
) -> None:
    await modes(HERE, "ask")
    model.answers = [facts("likes quokkas"), facts("likes quokkas")]
    await talk_and_learn(memory, "one", "two", "three", "four")
    due = await memory.client.call("ZSCORE", memory.keys.learning, HERE.tag)
    assert due is None or 86_300 < due - time() < 86_500
    [card] = await cards(memory)
    await talk(memory, "go on", closing=Closing(writes=to_json([replace(card, text="")])))
    await memory.forgetting.erase_messages(HERE, [1], "receipt")
    await memory.learn(HERE)
    here = await memory.scopes.read(HERE)
    assert (here.all(WaitingWrite), here.all(ToolWrites)) == ([], [])
    with pytest.raises(NotConfirmed, match="unknown"):
        await memory.tool_writer.answer(HERE, card.nonce, Asker(ANN, is_group=False), agrees=True)

    old = WaitingWrite("nonce", 3, time() - 1, UNASKED, Remember("likes quokkas", sender_id=ANN))
    await memory.scopes.write(here, Write(fields=[old]))
    assert await cards(memory) == []
    await memory.learn(HERE)
    assert (await memory.scopes.read(HERE)).all(WaitingWrite) == []
