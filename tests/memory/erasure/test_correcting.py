"""People delete single memories, answer questions, and turn memory off and on."""

import asyncio
import time
from dataclasses import replace
from functools import partial

import orjson
import pytest
from pydantic import BaseModel

from bot.commands.bot_command import ShownOnTop
from bot.commands.correcting import MemoryDeletion
from memory.behaviors.context import Asker
from memory.behaviors.running_state import RunningState
from memory.erasure.questions import NotConfirmed
from memory.memory import Memory
from memory.queue.open_turn import Closing
from memory.scopes.changes import Receipt, Write
from memory.scopes.entries import Again, Fact, Hidden
from memory.scopes.fields import STATE_LEARNER, State, WaitingWrite, Watermark
from memory.scopes.history import ChatHistory
from memory.scopes.scopes import Decide, Scopes
from memory.scopes.selectors import MessageWindowMessageSelector
from memory.scopes.writes import ForgetRecord, Remember, SetDomain, ToolWrite, to_json
from memory.store.errors import StoreUnavailable
from memory.store.keys import Scope
from tests.memory.clients import InterruptedClient
from tests.memory.conftest import memory_of
from tests.memory.erasure.test_forgetting import CANARY, forget, say, source, write
from tests.memory.learning.scripted import Notes, ScriptedModel, talk, talk_and_learn
from tests.memory.turns import ANN, ANNS, BOB, GROUP, HERE, clear, texts
from tests.memory.words_embedder import WordsEmbedder
from tests.stored import everything_stored

TOPIC = Scope.of_chat(HERE.chat_id, 7)
PLACES = pytest.mark.parametrize(("here", "scope"), [(HERE, ANNS), (GROUP, GROUP)])


async def known(memory: Memory, scope: Scope) -> list[str]:
    return [fact.text for fact in (await memory.scopes.read(scope)).facts]


async def found(memory: Memory, here: Scope, text: str) -> list[str]:
    history = await ChatHistory.read(memory.histories, here)
    return [m.text for each in await history.search(text, 5) for m in each.messages]


@PLACES
async def test_recall_skips_the_message_of_a_deleted_fact_until_it_is_wanted_again(
    memory: Memory, here: Scope, scope: Scope
) -> None:
    await talk(memory, "my cat is called Mephisto", "my boat is called Aurora", conversation=here)
    await write(memory, scope, Fact(0, "has a cat called Mephisto", (source(1, here),), 1))
    assert await found(memory, here, "Mephisto cat")
    deletion = MemoryDeletion(memory)
    again = (await deletion.delete(here, "f1")).offers["buttons.recall_again"]
    with pytest.raises(ShownOnTop):  # a second tap leaves that button there
        await deletion.delete(here, "f1")
    assert await known(memory, scope) == []
    assert "Mephisto" not in " ".join(await found(memory, here, "Mephisto cat"))
    assert await found(memory, here, "Aurora boat")
    assert (await deletion.delete(here, again)).note == "memory.recalled_again"
    assert (await found(memory, here, "Mephisto cat"))[0] == "my cat is called Mephisto"
    await memory.forgetting.erase_messages(here, [1, 2], "receipt")
    assert (await deletion.delete(here, again)).note == "why.deleted"


@PLACES
async def test_answers_that_repeat_an_edited_or_deleted_fact_are_not_recalled(
    memory: Memory, here: Scope, scope: Scope
) -> None:
    await talk(memory, "my tomcat is called Mephisto", conversation=here)
    tomcat = Fact(0, "has with Bob a tomcat called Mephisto", (source(1, here),), 1)
    await write(memory, scope, tomcat)
    said = [
        ("What shall I buy?", "Fish for Mephisto.", "f1"),
        ("Who is Mephisto in Faust?", "Mephisto is the devil.", "f1"),
        ("And who reads it?", "Whoever likes Mephisto.", ""),
        ("What is next?", "Feed the tomcat.", "x f1"),
        ("And who walks?", "Bob.", "f1"),
    ]
    for number, (question, answer, used) in enumerate(said, 2):
        await say(memory, number, question, answer, here=here, used=used)
    assert await memory.correcting.edit_fact(here, 1, "has with Bob a tomcat called Faust", ANN)
    assert (await memory.scopes.read(here)).hidden.keys() == {1, 2, 4}
    await memory.correcting.delete_fact(here, (await memory.scopes.read(scope)).facts[0].id)
    assert (await memory.scopes.read(here)).hidden.keys() == {1, 2, 4, 10, 12}
    await memory.correcting.hide(here, [1], hidden=False)
    assert (await memory.scopes.read(here)).hidden.keys() == set()


async def test_the_question_of_a_hidden_answer_does_not_seem_to_be_asked_again(
    memory: Memory,
) -> None:
    await talk(memory, "my tomcat is called Mephisto")
    await write(memory, ANNS, Fact(0, "has a tomcat called Mephisto", (source(1),), 1))
    await say(memory, 2, "What shall I buy?", "Fish for Mephisto.", used="f1")
    await say(memory, 3, "Thanks", "Gladly.")
    await memory.correcting.delete_fact(HERE, 1)
    history = await ChatHistory.read(memory.histories, HERE)
    window = history.select_messages(MessageWindowMessageSelector(9))
    said = ["What shall I buy?", "[removed from memory]", "Thanks", "Gladly."]
    assert [message.text for message in window] == said


async def test_of_a_message_that_is_gone_no_other_one_is_hidden(memory: Memory) -> None:
    """It was dropped for lack of space; the fact that it taught is moved to another place."""
    await talk(memory, "one", "two")
    await memory.client.call("XTRIM", memory.keys.scope(HERE).log, "MINID", 3)
    await memory.correcting.hide(HERE, [1, 2])
    assert (await memory.scopes.read(HERE)).hidden == {}


async def test_an_answer_that_repeats_a_deleted_fact_is_hidden_in_any_topic_until_wanted_again(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight topics change at once: all would hold up other people, and one by one the press."""
    await talk(memory, "my tomcat is called Mephisto")
    topics = [Scope.of_chat(HERE.chat_id, number) for number in range(7, 27)]
    for topic in topics:
        await say(memory, 2, "What shall I buy?", "Fish for Mephisto.", here=topic, used="f1")
    await write(memory, ANNS, Fact(0, "has a tomcat called Mephisto", (source(1),), 1))
    update, running, counts, away = Scopes.update, set[Scope](), list[int](), topics[:1]

    async def counted(scopes: Scopes, scope: Scope, decide: Decide) -> Receipt:
        running.add(scope)
        counts.append(len(running - {ANNS, HERE}))
        try:
            if scope in away:
                raise StoreUnavailable(away.pop())
            return await update(scopes, scope, decide)
        finally:
            running.remove(scope)

    monkeypatch.setattr(Scopes, "update", counted)
    with pytest.raises(StoreUnavailable):
        await memory.correcting.delete_fact(HERE, 1)
    assert running == set()  # no task goes on without an owner
    await memory.correcting.delete_fact(HERE, 1)
    assert [(await memory.scopes.read(each)).hidden.keys() for each in topics] == [{2}] * 20
    assert await memory.correcting.hide(HERE, [1], hidden=False)
    assert not any([(await memory.scopes.read(each)).hidden for each in topics])
    assert max(counts) == max(counts[-20:]) == 8


async def test_what_is_hidden_for_two_facts_is_recalled_again_after_both(memory: Memory) -> None:
    await talk(memory, "my tomcat is called Mephisto", "my dog is called Faust")
    pets = [Fact(0, f"has a {pet}", (source(at),), 1) for at, pet in ((1, "tomcat"), (3, "dog"))]
    await write(memory, ANNS, *pets)
    await say(memory, 3, "Who is it?", "A tomcat and a dog.", used="f1 f2")
    for fact_id in (1, 2):
        await memory.correcting.delete_fact(HERE, fact_id)
    await memory.correcting.hide(HERE, [3], hidden=False)
    assert (await memory.scopes.read(HERE)).hidden.keys() == {1, 2, 6}


@PLACES
async def test_an_answer_that_is_committed_while_its_fact_is_deleted_is_not_recalled(
    memory: Memory, interrupted: InterruptedClient, here: Scope, scope: Scope
) -> None:
    await talk(memory, "my tomcat is called Mephisto", conversation=here)
    await write(memory, scope, Fact(0, "has a tomcat called Mephisto", (source(1, here),), 1))
    beside = memory_of(interrupted)
    answers = partial(say, memory, 2, "What shall I buy?", "Milk for Mephisto.", here=here)
    interrupted.behind["HGETALL"] = partial(answers, used="f1")  # behind the first look for such
    await beside.correcting.delete_fact(here, 1)
    assert interrupted.behind == {}
    assert (await memory.scopes.read(here)).hidden.keys() == {1, 2, 4}


async def test_answers_are_hidden_also_where_the_deleted_fact_comes_from(memory: Memory) -> None:
    await talk(memory, "one", "my tomcat is called Mephisto", conversation=HERE)
    await say(memory, 3, "What shall I buy?", "Fish for Mephisto.", used="f1")
    await say(memory, 1, "And today?", "Milk for Mephisto.", here=TOPIC, used="f1")
    await say(memory, 2, "My tomcat is called Mephisto, I say", "Fine.", here=TOPIC)
    said_twice = Fact(0, "has a tomcat called Mephisto", (source(3, HERE), source(3, TOPIC)), 1)
    await write(memory, ANNS, said_twice)
    await memory.correcting.delete_fact(TOPIC, 1)
    assert (await memory.scopes.read(HERE)).hidden.keys() == {3, 4, 6}
    assert (await memory.scopes.read(TOPIC)).hidden.keys() == {2, 3, 4}
    await memory.correcting.hide(TOPIC, [3], hidden=False)
    assert (await memory.scopes.read(HERE)).hidden.keys() == set()
    assert (await memory.scopes.read(TOPIC)).hidden.keys() == set()
    await write(memory, ANNS, said_twice)
    assert await memory.correcting.edit_fact(HERE, 2, "has a cat", ANN)
    assert await memory.correcting.delete_fact(TOPIC, 3) == (3,)
    await memory.correcting.hide(TOPIC, [3], hidden=False)
    assert (await memory.scopes.read(TOPIC)).hidden.keys() == set()


async def test_a_deleted_state_is_learned_again_from_later_messages_only(memory: Memory) -> None:
    await talk(memory, "one")
    await write(memory, HERE, State("{}"), Watermark(STATE_LEARNER, 1))
    await memory.correcting.delete_state(HERE)
    scope_memory = await memory.scopes.read(HERE)
    assert (scope_memory.state, scope_memory.watermark(STATE_LEARNER)) == ("", 2)


async def test_nothing_is_learned_while_memory_is_off_and_turning_it_on_erases_it(
    memory: Memory, model: ScriptedModel
) -> None:
    memory.enable_learning([Notes(every=1, is_personal=True)], model)
    model.parts = {"notes": {"text": "a note"}}
    await talk(memory, "before")
    await memory.switch.turn_off(HERE)
    await memory.switch.turn_off(HERE)
    writes = to_json([Remember("a tool's", sender_id=ANN), Remember("?", asks_first=True)])
    await talk_and_learn(memory, "secret", closing=Closing(digest="steps", writes=writes))
    assert (await memory.scopes.read(HERE)).is_off
    assert await known(memory, ANNS) == []
    assert dict((await memory.scopes.read(HERE)).fields) == {}
    assert await texts(memory) == ["before", "yes", "secret", "yes"]
    assert [await memory.switch.turn_on(HERE) for _ in range(2)] == [2, 0]
    assert await texts(memory) == ["before", "yes"]
    assert not (await memory.scopes.read(HERE)).is_off
    await memory.learn(HERE)
    assert await known(memory, ANNS) == ["a note"]
    await memory.switch.turn_off(HERE)
    await clear(memory, 10)
    assert (await memory.scopes.read(HERE)).is_off


async def turn_off_and_talk(memory: Memory) -> None:
    """Turn memory off and say a secret."""
    await memory.switch.turn_off(HERE)
    writes = to_json([Remember("a secret", sender_id=ANN)])
    await talk(memory, "a secret", closing=Closing(writes=writes))


async def test_messages_are_not_learned_if_memory_goes_off_during_the_model_call(
    memory: Memory, model: ScriptedModel, embedder: WordsEmbedder
) -> None:
    memory.enable_learning([notes := Notes(every=1, is_personal=True)], model)
    model.parts = {"notes": {"text": "a note"}}
    await talk(memory, "before")
    model.meanwhile = partial(turn_off_and_talk, memory)
    await memory.learn(HERE)
    await memory.learn(HERE)
    assert (len(model.asked), notes.batches) == (1, [[1, 2]])
    assert await known(memory, ANNS) == ["a note"]
    assert "a secret" not in " ".join(embedder.texts)


async def test_messages_get_no_vector_if_memory_goes_off_during_the_embedding(
    memory: Memory, embedder: WordsEmbedder
) -> None:
    await talk(memory, "before")
    embedder.meanwhile = partial(turn_off_and_talk, memory)
    assert (await memory.learn(HERE)).messages == 2
    assert "a secret" not in " ".join(embedder.texts)
    await memory.switch.turn_on(HERE)
    assert (await talk_and_learn(memory, "after")).messages == 2


@pytest.mark.parametrize("is_on_again", [False, True])
async def test_a_running_round_keeps_nothing_that_is_said_while_memory_is_off(
    memory: Memory, model: ScriptedModel, interrupted: InterruptedClient, *, is_on_again: bool
) -> None:
    embedder = None if is_on_again else WordsEmbedder()
    beside = memory_of(interrupted, embedder)
    beside.enable_learning([Notes(every=1, is_personal=True)], model)
    interrupted.behind["HMGET"] = partial(turn_off_and_talk, memory)
    if is_on_again:
        interrupted.behind["XRANGE"] = partial(memory.switch.turn_on, HERE)
    await beside.learn(HERE)
    assert interrupted.behind == {}
    assert (model.asked, await known(memory, ANNS)) == ([], [])
    assert await memory.client.call("EXISTS", memory.keys.scope(HERE).vectors) == 0


async def test_tool_writes_from_while_memory_was_off_are_not_kept_after_it_is_on(
    memory: Memory,
) -> None:
    kept = to_json([Remember("before", sender_id=ANN), Remember("not wanted", sender_id=ANN)])
    await talk_and_learn(memory, "one", closing=Closing(writes=kept))
    await memory.switch.turn_off(HERE)
    planted = Remember('a ["forget",1] secret', sender_id=ANN)
    asked = Remember("a secret", asks_first=True, sender_id=ANN, nonce="abc")
    writes = to_json([planted, ForgetRecord(2), asked])
    await talk(memory, "two", "three", closing=Closing(writes=writes))
    assert await memory.switch.turn_on(HERE) == 4
    await memory.learn(HERE)
    assert await known(memory, ANNS) == ["before"]
    assert dict((await memory.scopes.read(HERE)).fields) == {}


async def ask(memory: Memory, here: Scope, *wanted: ToolWrite) -> None:
    """Run a turn whose tool wants to write something that the person did not say."""
    writes = wanted or (Remember("likes olives", asks_first=True, sender_id=ANN, nonce="abc"),)
    await talk_and_learn(memory, "one", conversation=here, closing=Closing(writes=to_json(writes)))


async def answer(memory: Memory, here: Scope, *, agrees: bool, sender: int = ANN) -> str:
    asker = Asker(sender, is_group=not here.is_private)
    return await memory.tool_writer.answer(here, "abc", asker, agrees=agrees)


@PLACES
async def test_a_fact_that_needs_consent_is_kept_once_and_only_by_the_person_asked(
    memory: Memory, here: Scope, scope: Scope
) -> None:
    await ask(memory, here)
    assert await known(memory, scope) == []
    with pytest.raises(NotConfirmed, match="not_yours"):
        await answer(memory, here, agrees=True, sender=BOB)
    answers = [await answer(memory, here, agrees=agrees) for agrees in (True, False)]
    assert answers == ["kept", "kept"]
    [fact] = (await memory.scopes.read(scope)).facts
    epoch = (await memory.scopes.read(here)).source_epoch
    assert (fact.text, fact.sources) == ("likes olives", (source(1, here, epoch=epoch),))


async def test_a_declined_fact_is_removed_at_once(memory: Memory) -> None:
    await ask(memory, HERE)
    assert await answer(memory, HERE, agrees=False) == "not_kept"
    assert "olives" not in str((await memory.scopes.read(HERE)).fields)
    assert await known(memory, ANNS) == []


async def test_an_unanswered_question_is_removed_after_an_hour(memory: Memory) -> None:
    began = time.time()
    await ask(memory, HERE)
    due = await memory.client.call("ZSCORE", memory.keys.learning, HERE.tag)
    assert began - 1 <= due - 3_600 <= time.time() + 1
    question = (await memory.scopes.read(HERE)).get(WaitingWrite, "abc")
    assert question is not None
    await write(memory, HERE, replace(question, expires_at=time.time() - 1))
    with pytest.raises(NotConfirmed, match="unknown"):
        await answer(memory, HERE, agrees=True)
    await memory.learn(HERE)
    assert dict((await memory.scopes.read(HERE)).fields) == {}


@PLACES
@pytest.mark.parametrize("learns_meanwhile", [True, False])
async def test_an_answer_before_the_learner_has_read_the_question_counts_once(
    memory: Memory, here: Scope, scope: Scope, *, learns_meanwhile: bool
) -> None:
    wanted = Remember("likes olives", asks_first=True, sender_id=ANN, nonce="abc")
    writes = to_json([wanted, Remember("rows", sender_id=ANN)])
    await talk(memory, "one", conversation=here, closing=Closing(writes=writes))
    learning = [memory.learn(here)] if learns_meanwhile else []
    answers = await asyncio.gather(answer(memory, here, agrees=True), *learning)
    assert answers[0] == "kept"
    await memory.learn(here)
    assert await answer(memory, here, agrees=False) == "kept"
    assert sorted(await known(memory, scope)) == ["likes olives", "rows"]
    assert "olives" not in str((await memory.scopes.read(here)).fields)


@PLACES
@pytest.mark.parametrize("agrees", [True, False])
async def test_a_fact_is_erased_only_after_the_person_has_agreed(
    memory: Memory, here: Scope, scope: Scope, *, agrees: bool
) -> None:
    """It works while memory is off too, because erasing is always allowed."""
    await write(memory, scope, Fact(0, "sails", (source(1, here),), 1))
    await memory.switch.turn_off(here)
    await ask(memory, here, ForgetRecord(1, asks_first=True, sender_id=ANN, nonce="abc"))
    assert await known(memory, scope) == ["sails"]
    answers = [await answer(memory, here, agrees=each) for each in (agrees, True)]
    assert answers == ["forgotten" if agrees else "not_forgotten"] * 2
    assert await known(memory, scope) == ([] if agrees else ["sails"])


@pytest.mark.parametrize("wanted", [Remember("rows", 1, nonce="abc"), ForgetRecord(1, nonce="abc")])
async def test_a_button_does_not_change_a_fact_that_others_have_confirmed_since(
    memory: Memory, wanted: Remember | ForgetRecord
) -> None:
    await write(memory, GROUP, Fact(0, "sails", (source(1, GROUP),), 1))
    await ask(memory, GROUP, replace(wanted, asks_first=True, sender_id=ANN))
    await write(memory, GROUP, Again(1, source(1, GROUP, BOB)))
    with pytest.raises(NotConfirmed, match="not_yours"):
        await answer(memory, GROUP, agrees=True)
    facts = (await memory.scopes.read(GROUP)).facts
    assert [(fact.text, fact.is_current) for fact in facts] == [("sails", True)]


class Boat(BaseModel):
    """What an operator keeps."""

    name: str = ""


async def test_domain_fields_are_set_only_after_the_person_has_agreed(memory: Memory) -> None:
    memory.enable_learning([RunningState(memory.scopes, Boat)])
    named = SetDomain('{"name": "Aurora"}', asks_first=True, sender_id=ANN, nonce="abc")
    await ask(memory, HERE, named)
    assert (await memory.scopes.read(HERE)).state == ""
    assert await answer(memory, HERE, agrees=True) == "kept"
    assert '"domain":{"name":"Aurora"}' in (await memory.scopes.read(HERE)).state


async def test_an_export_holds_the_newest_messages_of_its_scope_that_fit(memory: Memory) -> None:
    await talk(memory, *(f"message {number}" for number in range(50)))
    await talk(memory, "elsewhere", conversation=GROUP)
    whole = await memory.exporter.export(HERE)
    assert whole.left_out == 0
    assert len(orjson.loads(whole.content)["messages"]) == 100
    assert b"elsewhere" not in whole.content
    part = await memory.exporter.export(HERE, max_bytes=len(whole.content) // 2)
    messages = orjson.loads(part.content)["messages"]
    assert len(part.content) <= len(whole.content) // 2
    assert (part.left_out, messages[-1]["number"]) == (100 - len(messages), 100)
    assert len(messages) > 30


async def test_a_deleted_fact_hides_all_messages_that_said_it(memory: Memory) -> None:
    await talk(memory, *("My cat is called Mephisto" if n == 2 else f"word{n}" for n in range(60)))
    again = [Again(1, source(1 + 2 * n), 86_400.0 * n) for n in range(1, 60)]
    await write(memory, ANNS, Fact(0, "Has a cat called Mephisto", (source(1),), 1.0), *again)
    await memory.correcting.delete_fact(HERE, 1)
    assert "Mephisto" not in " ".join(await found(memory, HERE, "Mephisto cat"))


@pytest.mark.parametrize("by", ["a person's wish", "an older release"])
async def test_a_message_stays_hidden_until_each_of_its_reasons_is_taken_back(
    memory: Memory, by: str
) -> None:
    """An older release knows one reason, and takes back all."""
    await talk(memory, "my cat is called Mephisto")
    await write(memory, ANNS, Fact(0, "has a cat called Mephisto", (source(1),), 1))
    await say(memory, 2, "What shall I buy?", "Fish for Mephisto.", used="f1")
    await memory.correcting.delete_fact(HERE, 1)
    here = await memory.scopes.read(HERE)
    assert here.hidden.keys() == {1, 2, 4}
    if by == "an older release":
        await memory.scopes.write(here, Write([Hidden(4, hidden=False)]))
    else:
        await memory.correcting.hide(HERE, [4])
        await memory.correcting.hide(HERE, [1], hidden=False)
    left = (await memory.scopes.read(HERE)).hidden.keys()
    assert left == ({1, 2} if by == "an older release" else {4})


async def test_an_erased_message_of_a_fact_that_was_said_often_leaves_no_words(
    memory: Memory, valkey: str
) -> None:
    await talk(memory, *(f"word{n}" for n in range(60)))
    again = [Again(1, source(1 + 2 * n), 86_400.0 * n) for n in range(1, 60)]
    again[1] = replace(again[1], source=replace(again[1].source, said=f"Has a {CANARY}"))
    await write(memory, ANNS, Fact(0, "Has a friend", (source(1),), 1.0), *again)
    await forget(memory, 5)
    assert CANARY.encode() not in await everything_stored(valkey)
