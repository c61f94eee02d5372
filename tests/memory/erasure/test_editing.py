"""People give facts another wording, and the old one never comes back."""

from functools import partial

import orjson
import pytest

from memory.behaviors.context import CallContext, Person
from memory.behaviors.user_facts import UserFacts
from memory.memory import Memory
from memory.queue.open_turn import Closing
from memory.scopes.entries import THE_ONE_BEFORE, Ended, Fact, Synopsis
from memory.scopes.fields import State, Watermark
from memory.scopes.writes import Remember, to_json
from memory.store.keys import Scope
from tests.memory.erasure.test_correcting import PLACES, found, known
from tests.memory.erasure.test_forgetting import source, write
from tests.memory.learning.scripted import ScriptedModel, talk, talk_and_learn
from tests.memory.turns import ANN, ANNS, HERE

OLD, NEW = "has a cat called Mephisto", "has a cat called Morpheus"


def statement(text: str, message: int) -> dict[str, object]:
    return {"text": text, "message": message, "replaces": None, "repeats": None}


def synopsis(text: str, first: int, last: int) -> Synopsis:
    return Synopsis(0, text, "", "", "", "", "", "", 1, 2, first, last, HERE.tag)


async def history_of(memory: Memory, fact_id: int) -> list[str]:
    """Return the former wordings of a fact as an export shows them."""
    facts = orjson.loads((await memory.exporter.export(HERE)).content)["facts"]
    [fact] = [each for each in facts if each["id"] == fact_id]
    return [each["text"] for each in fact["replaced"]]


async def learn_old(memory: Memory, here: Scope, scope: Scope) -> None:
    """Store the old wording and its vector, learned from the first message."""
    await talk(memory, "my cat is called Mephisto", "my boat is called Aurora", conversation=here)
    await write(memory, scope, Fact(0, OLD, (source(1, here),), 1))
    await memory.learn(here)


@PLACES
async def test_the_new_wording_takes_the_place_of_the_old_one(
    memory: Memory, here: Scope, scope: Scope
) -> None:
    await learn_old(memory, here, scope)
    assert await memory.correcting.edit_fact(here, 1, OLD, ANN)
    assert not (await memory.scopes.read(here)).hidden
    assert [await memory.correcting.edit_fact(here, 1, NEW, ANN) for _ in range(2)] == [True] * 2
    (fact,) = (await memory.scopes.read(scope)).facts
    assert (fact.text, fact.is_current, fact.sources[0].sender_id) == (NEW, True, ANN)
    assert [(each.id, each.text) for each in fact.replaced] == [(1, OLD)]
    vectors = await memory.client.call("XRANGE", memory.keys.scope(scope).record_vectors, "-", "+")
    assert [entry for entry, _ in vectors if entry == b"1-0"] == []
    assert "Mephisto" not in " ".join(await found(memory, here, "Mephisto cat"))
    (shown,) = orjson.loads((await memory.exporter.export(here)).content)["facts"]
    assert (shown["text"], [each["text"] for each in shown["replaced"]]) == (NEW, [OLD])

    assert await memory.correcting.edit_fact(here, 1, "has two cats", ANN)
    (fact,) = (await memory.scopes.read(scope)).facts
    assert (fact.text, [each.text for each in fact.replaced]) == ("has two cats", [OLD, NEW])
    assert not await memory.correcting.edit_fact(here, 99, NEW, ANN)

    await memory.correcting.delete_fact(here, fact.id)
    assert await known(memory, scope) == []
    records = await memory.client.call("XRANGE", memory.keys.scope(scope).records, "-", "+")
    assert b"cat" not in b"".join(fields[b"j"] for _, fields in records)


async def test_what_a_fact_replaced_is_its_history_and_goes_with_it(memory: Memory) -> None:
    await talk(memory, "I live in Graz", "I live in Linz")
    graz = Fact(0, "lives in Graz", (source(1),), 1)
    linz = Fact(0, "lives in Linz", (source(3),), 2)
    await write(memory, ANNS, graz, linz, Ended(1, 2, THE_ONE_BEFORE))
    assert await history_of(memory, 2) == ["lives in Graz"]
    await memory.correcting.edit_fact(HERE, 2, "lives in Vienna", ANN)
    assert await history_of(memory, 4) == ["lives in Graz", "lives in Linz"]
    await memory.forgetting.erase_messages(HERE, [1], "receipt")
    (fact,) = (await memory.scopes.read(ANNS)).facts
    assert (fact.text, [each.id for each in fact.replaced]) == ("lives in Vienna", [2])
    await memory.forgetting.erase_messages(HERE, [3], "another")
    assert await known(memory, ANNS) == []


async def test_summaries_with_the_replaced_words_go(memory: Memory) -> None:
    await talk(memory, "my cat is called Mephisto", "hello")
    summaries = [
        synopsis("They named Mephisto.", 1, 2),
        synopsis("They named Mephisto later.", 3, 4),
        synopsis("They have a cat that is called something.", 1, 2),
    ]
    await write(memory, HERE, *summaries, State('{"key_entities":["Mephisto"]}'))
    await write(memory, ANNS, Fact(0, OLD, (source(1),), 1))
    await memory.correcting.edit_fact(HERE, 1, NEW, ANN)
    here = await memory.scopes.read(HERE)
    assert ([each.id for each in here.synopses], here.state) == ([2, 3], "")


@pytest.mark.parametrize("words", [OLD, "owns Mephisto, a cat"])
async def test_a_batch_under_way_and_fifty_turns_do_not_bring_the_old_words_back(
    memory: Memory, model: ScriptedModel, words: str
) -> None:
    """The model states the old words from each message that was said before the edit."""
    await learn_old(memory, HERE, ANNS)
    memory.enable_learning([UserFacts(memory.scopes, memory.tokens)], model)
    await talk(memory, "Mephisto is my cat, and I sail", *["Mephisto purrs"] * 3)
    model.meanwhile = partial(memory.correcting.edit_fact, HERE, 1, NEW, ANN)
    model.answers = [{"facts": {"facts": [statement(words, 5), statement("sails", 5)]}}] * 2
    await memory.learn(HERE)
    await memory.learn(HERE)
    assert len(model.asked) == 2
    assert sorted(await known(memory, ANNS)) == [NEW, "sails"]
    assert OLD not in model.asked[-1][1]

    learners = (await memory.scopes.read(ANNS)).all(Watermark)
    # As an edited message does.
    await write(memory, ANNS, *(Watermark(each.learner, 0) for each in learners))
    await talk(memory, *["yes"] * 50)
    for seq in range(1, 14):
        model.answers.append({"facts": {"facts": [statement(words, seq)]}})
    await memory.learn(HERE)
    assert sorted(await known(memory, ANNS)) == [NEW, "sails"]
    assert "my cat is called Mephisto" not in " ".join(content for _, content in model.asked[2:])


async def test_a_pinned_fact_is_in_every_prompt_also_after_an_edit(memory: Memory) -> None:
    texts = [f"likes dish number {number}" for number in range(12)]
    await write(memory, ANNS, *(Fact(0, text, (source(1),), 1) for text in texts))
    behavior = UserFacts(memory.scopes, memory.tokens)

    async def shown() -> str:
        await memory.scopes.read(ANNS)
        return await behavior.on_model_invoke(CallContext(HERE, Person(ANN), 2), [])

    assert texts[3] not in await shown()
    await memory.correcting.pin_fact(HERE, 4, is_pinned=True)
    assert texts[3] in await shown()
    await memory.correcting.edit_fact(HERE, 4, "likes soup", ANN)
    assert "likes soup" in await shown()
    await memory.correcting.pin_fact(HERE, 4, is_pinned=False)
    assert "likes soup" in await shown()
    new = (await memory.scopes.read(ANNS)).facts[-1].id
    await memory.correcting.pin_fact(HERE, new, is_pinned=False)
    assert "likes soup" not in await shown()
    await memory.correcting.edit_fact(HERE, new, "likes thick soup", ANN)
    edited = (await memory.scopes.read(ANNS)).facts[-1]
    assert (edited.is_pinned, edited.was_unpinned) == (False, True)


async def test_what_replaces_a_pinned_fact_is_pinned_even_if_the_pin_comes_meanwhile(
    memory: Memory, model: ScriptedModel
) -> None:
    await learn_old(memory, HERE, ANNS)
    memory.enable_learning([UserFacts(memory.scopes, memory.tokens)], model)
    model.meanwhile = partial(memory.correcting.pin_fact, HERE, 1, is_pinned=True)
    model.answers = [{"facts": {"facts": [{**statement(NEW, 3), "replaces": 1}]}}] * 2
    await talk_and_learn(memory, "and now he is called Morpheus", "really")
    await memory.learn(HERE)
    facts = (await memory.scopes.read(ANNS)).facts
    assert [(fact.text, fact.is_pinned) for fact in facts if fact.is_current] == [(NEW, True)]
    asked = to_json([Remember("has a dog", replaces=facts[-1].id, sender_id=ANN)])
    await talk_and_learn(memory, "it is a dog", closing=Closing(writes=asked))
    newest = (await memory.scopes.read(ANNS)).facts[-1]
    assert (newest.text, newest.is_pinned) == ("has a dog", True)
