"""A conversation that has expired counts its messages from 1 again; nobody takes old for new."""

import time

import pytest

from memory.erasure.jobs import Job
from memory.memory import Memory
from memory.message import Message
from memory.scopes.changes import Write
from memory.scopes.entries import Fact
from memory.scopes.fact_lists import with_facts
from memory.scopes.sources import Source
from tests.memory.erasure.test_correcting import TOPIC, known
from tests.memory.erasure.test_forgetting import expire
from tests.memory.turns import ANN, ANNS, HERE, begin, carry_out, clear, finish, history_of, put
from tests.memory.work.test_items import TEA, know, reminder, texts

NEW = "Their boat is called Aurora."


async def say(
    memory: Memory, number: int, question: str, answer: str, *, used: str = "", at: float = 0
) -> None:
    at = at or time.time()
    asked = Message(0, 0, "user", question, at, ANN, "Ann", (number,), 3)
    said = Message(0, 0, "assistant", answer, at, tokens=1, used=used)
    await finish(memory, await begin(memory, number), [asked, said])


async def say_and_learn(memory: Memory, number: int = 2, *, at: float = 0) -> None:
    await say(memory, number, "my boat is called Aurora", "Fine.", at=at)
    here = await memory.scopes.read(HERE)
    fact = Fact(0, NEW, (Source(HERE.tag, 1, here.source_epoch, ANN),), time.time())
    await memory.scopes.update(ANNS, lambda _: Write([fact], learned_from=here))


@pytest.fixture
async def old(memory: Memory) -> str:
    """Let a conversation begin again that had a fact and two reminders; return the fact."""
    here, facts, source = await know(memory, HERE)  # its messages are of 1970
    await memory.work.add(here, reminder(TEA), facts, source)
    await expire(memory)
    await say_and_learn(memory)
    return facts.facts[0].text


@pytest.mark.parametrize("how", ["forget", "edit"])
async def test_forgetting_or_editing_a_new_message_erases_nothing_of_the_old_ones(
    memory: Memory, old: str, how: str
) -> None:
    if how == "forget":
        await memory.forgetting.erase_messages(HERE, [1, 2], "receipt")
    else:
        await memory.forgetting.drop_facts(HERE, [1])
    assert await known(memory, ANNS) == [old]
    assert await texts(memory, HERE) == ["asked for", TEA]


@pytest.mark.parametrize("how", ["delete", "edit"])
@pytest.mark.usefixtures("old")
async def test_an_old_fact_takes_no_new_message_out_of_recall(memory: Memory, how: str) -> None:
    """But an answer that repeats it, whatever the number of the old message was, and its item."""
    await say(memory, 3, "What shall I buy?", "A birthday cake.", used="f1")
    if how == "delete":
        assert await memory.correcting.delete_fact(HERE, 1) == ()
    else:
        await memory.correcting.edit_fact(HERE, 1, "Was born in May.", ANN)
    assert (await memory.scopes.read(HERE)).hidden.keys() == {4}
    assert NEW in await known(memory, ANNS)
    assert await texts(memory, HERE) == ["asked for"]


async def test_an_answer_elsewhere_that_repeats_an_old_fact_is_not_recalled(
    memory: Memory, old: str
) -> None:
    """The fact rests on a message whose number the conversation has not reached again."""
    source = Source(HERE.tag, 90, 1, ANN)
    await memory.scopes.update(ANNS, lambda _: Write([Fact(0, old, (source,), 1)]))
    await say(memory, 3, "What shall I buy?", "A birthday cake.", used="f3")
    await memory.correcting.delete_fact(TOPIC, 3)
    assert (await memory.scopes.read(HERE)).hidden.keys() == {4}


@pytest.mark.usefixtures("old")
async def test_a_new_message_is_not_shown_as_what_an_old_fact_rests_on(memory: Memory) -> None:
    history = await history_of(memory)
    here, facts = await memory.scopes.read(HERE), await memory.scopes.read(ANNS)
    [found] = with_facts(await history.search("Aurora", 1), facts, here)
    assert found.repeated_by == {1: (2,)}


async def say_and_lose_the_metadata(memory: Memory) -> None:
    await say_and_learn(memory)
    await memory.client.call("DEL", memory.keys.scope(HERE).meta)
    await say(memory, 3, "and it is blue", "Fine.")


async def test_what_is_said_after_a_loss_of_the_metadata_and_a_clear_is_learned(
    memory: Memory,
) -> None:
    await say_and_lose_the_metadata(memory)
    await clear(memory)
    await expire(memory)
    await say_and_learn(memory, 20)
    assert await known(memory, ANNS) == [NEW]


@pytest.mark.usefixtures("old")
async def test_an_earlier_release_can_read_an_old_item(memory: Memory) -> None:
    """Its scripts take no number below zero."""
    stored = await memory.client.call("HVALS", memory.keys.scope(HERE).work)
    assert all(each.split(b"|")[1].isdigit() for each in stored)


@pytest.mark.usefixtures("old")
async def test_an_old_item_goes_with_its_person_even_if_they_wrote_since(memory: Memory) -> None:
    until = time.time() - 60
    await put(memory, 4)
    await carry_out(memory, Job("job", "forget", ANN, 3, until, b""))
    assert (await known(memory, ANNS), await texts(memory, HERE)) == ([], [])


async def test_a_fact_goes_with_its_message_even_if_the_metadata_was_lost_since(
    memory: Memory,
) -> None:
    await say_and_lose_the_metadata(memory)
    await memory.forgetting.erase_messages(HERE, [1, 2], "receipt")
    assert await known(memory, ANNS) == []


async def test_a_clear_of_an_expired_conversation_erases_what_was_learned_from_it(
    memory: Memory,
) -> None:
    """Also if nothing was said since. What is said then is learned, by whatever clock it came."""
    await say_and_learn(memory)
    await expire(memory)
    assert (await clear(memory)).records == 1
    assert await known(memory, ANNS) == []
    await say_and_learn(memory, 20, at=time.time() - 9)
    assert await known(memory, ANNS) == [NEW]
