"""A conversation that has expired counts its messages from 1 again; nobody takes old for new."""

import time

import pytest

from memory.erasure.jobs import Job
from memory.memory import Memory
from memory.message import Message
from memory.scopes.changes import Write
from memory.scopes.entries import Fact
from memory.scopes.fact_lists import with_facts
from memory.scopes.history import ChatHistory
from memory.scopes.log import Cursor
from memory.scopes.sources import Source
from memory.store.keys import Scope
from tests.memory.erasure.test_forgetting import expire, facts_of
from tests.memory.turns import ANN, ANNS, HERE, begin, carry_out, clear, put
from tests.memory.work.test_items import TEA, reminder, store

TOPIC = Scope.of_chat(ANN, 5)
OLD, NEW = "Their tomcat is called Mephisto.", "Their boat is called Aurora."


async def exchange(
    memory: Memory, question: str, answer: str, number: int = 1, *, used: str = "", at: float = 0
) -> None:
    """Answer a message, as a worker does."""
    turn = await begin(memory, number)
    await memory.turns.write_outbox(turn, b"[]")
    at = at or time.time()
    asked = Message(0, 0, "user", question, at, ANN, "Ann", (1,), 3)
    said = Message(0, 0, "assistant", answer, at, tokens=1, used=used)
    await memory.turns.commit(turn, [asked, said], Cursor())


async def learn(memory: Memory, text: str) -> None:
    """Learn a fact from the first message of the conversation as it is now."""
    here = await memory.scopes.read(HERE)
    fact = Fact(0, text, (Source(HERE.tag, 1, here.source_epoch, ANN),), time.time())
    await memory.scopes.update(ANNS, lambda _: Write([fact], learned_from=here))


@pytest.fixture
async def begun_again(memory: Memory) -> None:
    """Let a conversation begin again that had a fact and a reminder, with a new fact."""
    await store(memory, reminder("asked for long ago"))  # its messages are of 1970
    await learn(memory, OLD)
    await memory.work.add(
        await memory.scopes.read(HERE),
        reminder(TEA),
        await memory.scopes.read(ANNS),
        Source(HERE.tag, 1, (await memory.scopes.read(HERE)).source_epoch, ANN),
    )
    await expire_all_but_work(memory)
    await exchange(memory, "my boat is called Aurora", "Fine.")
    await learn(memory, NEW)


async def expire_all_but_work(memory: Memory) -> None:
    """Let a conversation expire; work items do not expire with it."""
    stored = await memory.client.call("HGETALL", memory.keys.scope(HERE).work)
    await expire(memory)
    await memory.client.call("HSET", memory.keys.scope(HERE).work, *sum(stored.items(), ()))


async def items(memory: Memory) -> list[str]:
    return sorted(each.text for each in await memory.work.list_open(HERE))


async def texts(memory: Memory) -> list[str]:
    return [text for text, _, _ in await facts_of(memory, ANNS)]


@pytest.mark.usefixtures("begun_again")
async def test_forgetting_a_new_message_erases_nothing_of_the_old_ones(memory: Memory) -> None:
    await memory.forgetting.erase_messages(HERE, [1, 2], "receipt")
    assert await texts(memory) == [OLD]
    assert await items(memory) == ["asked for long ago", TEA]


@pytest.mark.usefixtures("begun_again")
async def test_editing_a_new_message_erases_nothing_of_the_old_ones(memory: Memory) -> None:
    await memory.forgetting.drop_facts(HERE, [1])
    assert await texts(memory) == [OLD]
    assert await items(memory) == ["asked for long ago", TEA]


@pytest.mark.parametrize("how", ["delete", "edit"])
@pytest.mark.usefixtures("begun_again")
async def test_an_old_fact_takes_no_new_message_out_of_recall(memory: Memory, how: str) -> None:
    """But an answer that repeats it, whatever the number of the old message was."""
    await exchange(memory, "What shall I buy?", "Fish for Mephisto.", 2, used="f1")
    if how == "delete":
        assert await memory.correcting.delete_fact(HERE, 1) == ()
    else:
        await memory.correcting.edit_fact(HERE, 1, "Their tomcat is called Faust.", ANN)
    assert (await memory.scopes.read(HERE)).hidden.keys() == {4}
    assert NEW in await texts(memory)


@pytest.mark.usefixtures("begun_again")
async def test_an_answer_elsewhere_that_repeats_an_old_fact_is_not_recalled(memory: Memory) -> None:
    """The fact rests on a message whose number the conversation has not reached again."""
    source = Source(HERE.tag, 90, 1, ANN)
    await memory.scopes.update(ANNS, lambda _: Write([Fact(0, OLD, (source,), 1)]))
    await exchange(memory, "What shall I buy?", "Fish for Mephisto.", 2, used="f3")
    await memory.correcting.delete_fact(TOPIC, 3)
    assert (await memory.scopes.read(HERE)).hidden.keys() == {4}


@pytest.mark.usefixtures("begun_again")
async def test_a_new_message_is_not_shown_as_what_an_old_fact_rests_on(memory: Memory) -> None:
    history = await ChatHistory.read(memory.histories, HERE)
    here, facts = await memory.scopes.read(HERE), await memory.scopes.read(ANNS)
    [found] = with_facts(await history.search("Aurora", 1), facts, here)
    assert found.repeated_by == {1: (2,)}


@pytest.mark.usefixtures("begun_again")
async def test_an_old_item_goes_with_its_person_even_if_they_wrote_since(memory: Memory) -> None:
    until = time.time() - 60
    await put(memory, 4)
    await carry_out(memory, Job("job", "forget", ANN, 3, until, b""))
    assert await items(memory) == []
    assert await texts(memory) == []


async def test_a_fact_goes_with_its_message_even_if_the_metadata_was_lost_since(
    memory: Memory,
) -> None:
    await exchange(memory, "my boat is called Aurora", "Fine.")
    await learn(memory, NEW)
    await memory.client.call("DEL", memory.keys.scope(HERE).meta)
    await exchange(memory, "and it is blue", "Fine.", 2)
    await memory.forgetting.erase_messages(HERE, [1, 2], "receipt")
    assert await texts(memory) == []


async def test_a_clear_of_an_expired_conversation_erases_what_was_learned_from_it(
    memory: Memory,
) -> None:
    """Also if nothing was said since. What is said then is learned, by whatever clock it came."""
    await exchange(memory, "my boat is called Aurora", "Fine.")
    await learn(memory, OLD)
    await expire(memory)
    assert (await clear(memory)).records == 1
    assert await texts(memory) == []
    await exchange(memory, "my boat is called Aurora", "Fine.", 20, at=time.time() - 9)
    await learn(memory, NEW)
    assert await texts(memory) == [NEW]
