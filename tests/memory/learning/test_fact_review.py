"""Facts of a kind that changes: when a person is asked about one, and what the answer does."""

from dataclasses import replace
from time import time

import pytest

from memory.behaviors.context import Asker
from memory.behaviors.user_facts import UserFacts, question_for, to_confirm
from memory.erasure.questions import NotConfirmed
from memory.memory import Memory
from memory.queue.open_turn import Closing
from memory.scopes.changes import Write
from memory.scopes.entries import Again, Checked, Fact, ScopeEntry
from memory.scopes.fields import WaitingWrite
from memory.scopes.sources import Source
from memory.scopes.writes import StillTrue, to_json
from tests.memory.behaviors.batches import DAY, NOW, scope_memory
from tests.memory.learning.scripted import ScriptedModel, talk, talk_and_learn
from tests.memory.turns import ANN, ANNS, HERE

ME = Asker(ANN, is_group=False)
GRAZ = Fact(0, "Lives in Graz.", (Source(HERE.tag, 1, 0, ANN),), NOW - 200 * DAY, changes=True)


@pytest.fixture
def learning(memory: Memory, model: ScriptedModel) -> Memory:
    memory.enable_learning([UserFacts(memory.scopes, memory.tokens)], model)
    return memory


def asked(*facts: ScopeEntry) -> list[str]:
    questions = to_confirm(scope_memory(*facts, scope=ANNS), ANN, NOW)
    return [question.old_text for question in questions]


async def ann_facts(memory: Memory) -> list[Fact]:
    return (await memory.scopes.read(ANNS)).facts


@pytest.mark.parametrize(
    ("entries", "is_asked"),
    [
        ([GRAZ], True),
        ([replace(GRAZ, changes=False)], False),
        ([replace(GRAZ, said_at=NOW - 170 * DAY)], False),
        ([replace(GRAZ, ended_at=NOW - DAY)], False),
        ([GRAZ, Checked(1, NOW - 29 * DAY)], False),
        ([GRAZ, Checked(1, NOW - 31 * DAY)], True),
        ([GRAZ, Checked(1, NOW - 100 * DAY, is_confirmed=True)], False),
        ([GRAZ, Again(1, Source(HERE.tag, 9, 0, ANN), NOW - 100 * DAY)], False),
        ([GRAZ, replace(GRAZ, text="Works."), Checked(2, NOW - DAY / 2)], False),
    ],
)
def test_a_changing_fact_is_asked_about_after_half_a_year_and_once_in_a_month(
    entries: list[ScopeEntry], *, is_asked: bool
) -> None:
    assert asked(*entries) == ["Lives in Graz."] * is_asked


def test_one_shown_fact_that_the_talk_is_about_is_asked_about() -> None:
    works, lives, sails = (
        StillTrue(at, nonce="n", old_text=text)
        for at, text in enumerate(("Works at Siemens.", "Lives in Graz.", "Sails to Graz."), 1)
    )
    noted = (works, lives, sails)
    assert question_for(noted, ["f1", "f2", "f3"], "Where is my bus?\nIn Graz.") == [lives]
    assert question_for(noted, ["f1", "f3"], "Where is my bus?\nIn Graz.") == [sails]
    assert question_for(noted, ["f1", "f2", "f3"], "How are you?\nFine.") == []


async def test_learning_keeps_the_kind_of_a_fact(learning: Memory, model: ScriptedModel) -> None:
    """A word that the schema does not have counts as "always"."""
    said = [("Lives in Graz.", "changes"), ("Is tall.", "always"), ("Sings.", "maybe")]
    parts = [{"text": text, "message": 1, "lasts": lasts} for text, lasts in said]
    model.parts = {"facts": {"facts": parts}}
    await talk_and_learn(learning, "one", "two", "three", "four")
    assert [fact.changes for fact in await ann_facts(learning)] == [True, False, False]
    await learning.correcting.edit_fact(HERE, 1, "Lives in Linz.", ANN)
    assert [fact.text for fact in await ann_facts(learning) if fact.changes] == ["Lives in Linz."]


async def asked_now(memory: Memory, nonce: str = "nonce") -> StillTrue:
    """Store a fact, and ask about it as a turn does."""
    await talk(memory, "I live in Graz")
    facts = await memory.scopes.read(ANNS)
    await memory.scopes.write(facts, Write([replace(GRAZ, said_at=time() - 200 * DAY)]))
    [question] = to_confirm(await memory.scopes.read(ANNS), ANN, time())
    question = replace(question, nonce=nonce)
    await talk(memory, "Where is my bus?", closing=Closing(writes=to_json([question])))
    assert (await memory.scopes.read(HERE)).waiting_writes == [question]
    await memory.learn(HERE)
    assert (await memory.scopes.read(HERE)).waiting_writes == []
    return question


async def test_a_yes_confirms_the_fact_once_and_changes_no_word(learning: Memory) -> None:
    question = await asked_now(learning)
    [fact] = await ann_facts(learning)
    assert time() - fact.asked_at < 60
    [waits] = (await learning.scopes.read(HERE)).all(WaitingWrite)
    assert 86_000 < waits.expires_at - time() < 86_500
    answer = learning.tool_writer.answer
    with pytest.raises(NotConfirmed, match="not_yours"):
        await answer(HERE, question.nonce, Asker(8, is_group=False), agrees=False)
    for agrees in (True, False, True):
        assert await answer(HERE, question.nonce, ME, agrees=agrees) == "confirmed"
    [now] = await ann_facts(learning)
    assert time() - now.confirmed_at < 60
    assert replace(now, confirmed_at=0) == fact
    facts = await learning.scopes.read(ANNS)
    assert to_confirm(facts, ANN, time() + 170 * DAY) == []
    assert "nonce" not in str(facts.fields)


async def test_a_no_erases_the_fact_as_wrong_does(learning: Memory) -> None:
    question = await asked_now(learning)
    for agrees in (False, True):
        answer = await learning.tool_writer.answer(HERE, question.nonce, ME, agrees=agrees)
        assert answer == "forgotten"
    assert await ann_facts(learning) == []
    assert 1 in (await learning.scopes.read(HERE)).hidden


async def test_an_answer_does_nothing_to_a_fact_that_has_other_words_now(learning: Memory) -> None:
    question = await asked_now(learning)
    [fact] = await ann_facts(learning)
    await learning.correcting.edit_fact(HERE, fact.id, "Lives in Linz.", ANN)
    for agrees in (False, True):
        with pytest.raises(NotConfirmed, match="unknown"):
            await learning.tool_writer.answer(HERE, question.nonce, ME, agrees=agrees)
    assert [fact.text for fact in await ann_facts(learning)] == ["Lives in Linz."]
