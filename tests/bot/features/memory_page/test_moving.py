"""A fact moves between all topics of a private chat and the one topic in which it was said."""

from functools import partial

import orjson
import pytest

from bot.features.memory_page.entries import move_fact
from memory.behaviors.user_facts import UserFacts
from memory.memory import Memory
from memory.queue.open_turn import Closing
from memory.scopes.entries import THE_ONE_BEFORE, Ended, Fact
from memory.scopes.writes import ForgetRecord, Remember, to_json
from memory.store.keys import Scope
from tests.memory.behaviors.batches import call_context, shown
from tests.memory.conftest import TOKENS
from tests.memory.erasure.test_correcting import found, known
from tests.memory.erasure.test_editing import statement
from tests.memory.erasure.test_forgetting import source, write
from tests.memory.learning.scripted import ScriptedModel, talk
from tests.memory.turns import ANN, ANNS, GROUP, HERE

TOPIC, OTHER = Scope.of_chat(ANN, 5), Scope.of_chat(ANN, 6)
CAT = "has a cat called Mephisto"


async def learn_cat(memory: Memory, conversation: Scope = TOPIC, *, clears: int = 0) -> None:
    """Store a pinned fact that replaced another; its id is 2."""
    await talk(memory, "my cat is called Mephisto", conversation=conversation)
    epoch = (await memory.scopes.read(conversation)).source_epoch
    said = (source(1, conversation, epoch=epoch - clears),)
    facts = Fact(0, "has no cat", said, 1), Fact(0, CAT, said, 2, is_pinned=True)
    await write(memory, conversation.facts_scope, *facts, Ended(1, 2, THE_ONE_BEFORE))


async def exported(memory: Memory, conversation: Scope) -> list[tuple[int, str, list[str]]]:
    facts = orjson.loads((await memory.exporter.export(conversation)).content)["facts"]
    return [(f["id"], f["text"], [each["text"] for each in f["replaced"]]) for f in facts]


async def test_a_moved_fact_is_known_in_its_topic_alone_until_it_moves_back(memory: Memory) -> None:
    await learn_cat(memory)
    behavior = UserFacts(memory.scopes, TOKENS)
    for _ in range(2):  # a repeat finds it moved
        await move_fact(memory.correcting, TOPIC, 2)
    assert (await known(memory, ANNS), await known(memory, TOPIC)) == ([], [CAT])
    assert CAT in await shown(behavior, "hello", call_context(TOPIC))
    assert await shown(behavior, "hello", call_context(OTHER)) == ""
    assert await exported(memory, TOPIC) == [(-1, CAT, ["has no cat"])]
    assert await exported(memory, OTHER) == []
    assert "Mephisto" not in " ".join(await found(memory, TOPIC, "Mephisto cat"))

    await memory.correcting.pin_fact(TOPIC, -1, is_pinned=False)
    assert await memory.correcting.edit_fact(TOPIC, -1, "has two cats", ANN)
    [(edited, text, _)] = await exported(memory, TOPIC)
    assert (edited < 0, text) == (True, "has two cats")
    assert await move_fact(memory.correcting, TOPIC, edited)
    [fact] = (await memory.scopes.read(ANNS)).facts
    assert (fact.text, fact.is_pinned, len(fact.replaced)) == ("has two cats", False, 2)
    assert await known(memory, TOPIC) == []
    assert "has two cats" in await shown(behavior, "hello", call_context(OTHER))


async def test_a_repeat_finishes_a_move_that_ended_between_its_steps(memory: Memory) -> None:
    await learn_cat(memory)
    epoch = (await memory.scopes.read(TOPIC)).source_epoch
    await write(memory, TOPIC, Fact(0, CAT, (source(1, TOPIC, epoch=epoch),), 2))
    assert await move_fact(memory.correcting, TOPIC, 2)
    assert (await known(memory, ANNS), await known(memory, TOPIC)) == ([], [CAT])


@pytest.mark.parametrize("conversation", [OTHER, HERE, GROUP])
async def test_a_fact_said_elsewhere_does_not_move(memory: Memory, conversation: Scope) -> None:
    await learn_cat(memory, conversation)
    pressed_in = TOPIC if conversation == OTHER else conversation
    assert not await move_fact(memory.correcting, pressed_in, 2)
    assert not await move_fact(memory.correcting, conversation, -2)
    assert CAT in await known(memory, conversation.facts_scope)


async def test_a_move_brings_back_nothing_that_is_being_erased(memory: Memory) -> None:
    """An erasure takes the messages first, and then the facts of the person."""
    await learn_cat(memory, clears=1)
    assert not await move_fact(memory.correcting, TOPIC, 2)
    await learn_cat(memory, OTHER)
    await memory.client.call("XTRIM", memory.keys.scope(OTHER).log, "MAXLEN", 0)
    assert not await move_fact(memory.correcting, OTHER, 4)
    assert [await known(memory, each) for each in (TOPIC, OTHER)] == [[], []]


async def test_erasing_its_message_takes_a_moved_fact(memory: Memory) -> None:
    await learn_cat(memory)
    assert await move_fact(memory.correcting, TOPIC, 2)
    await memory.forgetting.erase_messages(TOPIC, [1, 2], "receipt")
    assert await known(memory, TOPIC) == []


async def test_learning_and_tools_replace_a_moved_fact_in_its_topic(memory: Memory) -> None:
    model = ScriptedModel()
    memory.enable_learning([UserFacts(memory.scopes, TOKENS)], model)
    await learn_cat(memory)
    model.parts = {"facts": {"facts": []}}
    await memory.learn(TOPIC)
    assert await move_fact(memory.correcting, TOPIC, 2)
    replaced = {**statement("Has a cat called Morpheus.", 3), "replaces": -1}
    model.parts = {"facts": {"facts": [replaced]}}
    say = partial(talk, memory, conversation=TOPIC)
    await say("my cat is called Morpheus", *["and so on"] * 3)
    await memory.learn(TOPIC)
    assert '"id":-1' in model.asked[-1][1]
    present = [each for each in await exported(memory, TOPIC) if each[2]]
    assert [text for _, text, _ in present] == [CAT, "Has a cat called Morpheus."]
    write = Remember("has a dog", present[-1][0], sender_id=ANN)
    await say("it is a dog", closing=Closing(writes=to_json([write])))
    await memory.learn(TOPIC)
    facts = (await memory.scopes.read(TOPIC)).facts
    assert [each.text for each in facts if each.is_current] == ["has a dog"]
    assert await known(memory, ANNS) == []
    forget = to_json([ForgetRecord(-facts[-1].id)])
    await say("forget the dog", closing=Closing(writes=forget))
    await memory.learn(TOPIC)
    assert await known(memory, TOPIC) == []
