"""A message that is edited or answered again leaves nothing of its old words."""

from dataclasses import replace
from time import time

import pytest

from memory.memory import Memory
from memory.message import Message
from memory.queue.mailbox import Entry
from memory.queue.open_turn import OpenTurn
from memory.scopes.entries import Fact, Hidden
from memory.scopes.fields import STATE_LEARNER, Digest, State, StateUntrusted, Watermark
from memory.scopes.history import ChatHistory
from memory.scopes.log import Cursor
from memory.store.errors import LeaseLost
from tests.memory.clients import full_redis
from tests.memory.erasure.test_forgetting import CANARY, facts_of, say, source, synopsis, write
from tests.memory.learning.scripted import Notes, ScriptedModel, talk
from tests.memory.turns import ANN, ANNS, GROUP, HERE, clear, close, take, texts
from tests.stored import everything_stored

AGAIN = Entry(9, ANN, is_alone=True, body=b"a question").to_member()


async def asking(memory: Memory) -> tuple[OpenTurn, tuple[bytes, bytes]]:
    """Begin the turn of an entry that wants something changed; return it with its new form."""
    entry = Entry(9, ANN, is_alone=True, body=b"change it")
    await memory.mailbox.put(HERE, entry)
    turn = await take(memory)
    return turn, (entry.to_member(), AGAIN)


async def rewrite(memory: Memory) -> None:
    """Replace the words of the third message, which is answered again."""
    _, change = await asking(memory)
    history = await ChatHistory.read(memory.histories, HERE)
    edited = replace(history.messages[2], text="I have a cat.")
    await memory.forgetting.rewrite(HERE, edited, history.messages[2:4], change)
    await memory.forgetting.drop_facts(HERE, [3])


async def test_an_exchange_goes_with_all_that_was_learned_and_its_turn_begins_again(
    memory: Memory, valkey: str
) -> None:
    await talk(memory, "I like tea.", f"I have a {CANARY}.")
    await write(memory, HERE, State(f'{{"pet": "{CANARY}"}}'), synopsis(1, 4))
    await write(memory, ANNS, Fact(0, f"Has a {CANARY}.", (source(3),), said_at=1))
    turn, change = await asking(memory)
    await memory.forgetting.take_out(HERE, [3, 4], change)
    with pytest.raises(LeaseLost):
        await memory.turns.write_outbox(turn, b"[]")
    again = await take(memory)
    assert [(entry.update_id, entry.body) for entry in again.entries] == [(9, b"a question")]
    assert again.attempts == 1
    await memory.forgetting.drop_facts(HERE, [3, 4])
    assert CANARY.encode() not in await everything_stored(valkey)
    await close(memory, again)
    assert await texts(memory) == ["I like tea.", "yes", "a question", "yes"]


async def test_a_question_that_waits_to_be_answered_again_is_erased_with_all_that_is_older(
    memory: Memory,
) -> None:
    """Its entry is newer than the confirmation, which finds entries by their update."""
    asked = Message(0, 0, "user", f"I have a {CANARY}.", int(time()), ANN)
    cuts = await memory.forgetting.read_cuts(HERE, [asked])
    assert await memory.forgetting.read_cuts(HERE, [asked]) == cuts
    await clear(memory)
    assert await memory.forgetting.read_cuts(HERE, [asked]) != cuts


async def test_what_is_being_forgotten_is_not_asked_again(memory: Memory) -> None:
    """A `/forget` in a group first takes what waits, and then what was said."""
    before, after = (Message(0, 0, "user", "Hello", at, ANN) for at in (99.0, 101.0))
    others = Message(0, 0, "user", "Hello", 99.0, 8)
    request = {"receipt": "job:waiting", "person": str(ANN), "last_update": "7", "until": 100.5}
    await memory.scripts["erase_person"](memory.keys.scope(GROUP), request)
    assert await memory.forgetting.read_cuts(GROUP, [others, before]) is None
    assert await memory.forgetting.read_cuts(GROUP, [others, after])
    assert await memory.forgetting.read_cuts(HERE, [before]) is not None


async def test_a_task_that_began_while_its_person_is_being_forgotten_is_not_asked_again(
    memory: Memory,
) -> None:
    """Its turn repeats what was said before, so the erasure takes it whenever it began."""
    now = await memory.client.server_time()
    request = {"receipt": "job:waiting", "person": str(ANN), "last_update": "7", "until": now - 9}
    await memory.scripts["erase_person"](memory.keys.scope(GROUP), request)
    began_before, later = (
        Message(0, 0, "user", "Call Ida", at, ANN, message_ids=(-5,)) for at in (now - 3, now + 9)
    )
    assert await memory.forgetting.read_cuts(GROUP, [began_before]) is None
    assert await memory.forgetting.read_cuts(GROUP, [later])


async def test_an_exchange_of_which_a_message_was_erased_is_not_asked_again(
    memory: Memory, valkey: str
) -> None:
    await talk(memory, "I like tea.", f"I have a {CANARY}.")
    _, (entry, _) = await asking(memory)
    again = Entry(9, ANN, is_alone=True, body=f"I have a {CANARY}.".encode()).to_member()
    await memory.forgetting.erase_messages(HERE, [3], "a receipt")
    with pytest.raises(LeaseLost):
        await memory.forgetting.take_out(HERE, [3, 4], (entry, again))
    assert CANARY.encode() not in await everything_stored(valkey)
    assert await texts(memory) == ["I like tea.", "yes", "yes"]


@pytest.mark.parametrize(
    ("state", "learned_up_to", "stays"),
    [
        ('{"pet": "cat"}', 2, True),
        ('{"pet": "cat"}', 3, False),
        ('{"pet": "cat"}', 0, False),
        ('{"domain": {"pet": "cat"}}', 2, False),
    ],
    ids=["learned before", "learned from it", "not known", "perhaps written by its tools"],
)
async def test_the_state_stays_only_if_nothing_of_the_exchange_is_in_it(
    memory: Memory, state: str, learned_up_to: int, *, stays: bool
) -> None:
    await talk(memory, "I have a cat.", "And a dog.")
    await write(memory, HERE, State(state), StateUntrusted(is_untrusted=True))
    await write(memory, HERE, Watermark(STATE_LEARNER, learned_up_to))
    _, change = await asking(memory)
    await memory.forgetting.take_out(HERE, [3, 4], change)
    here = await memory.scopes.read(HERE)
    assert (here.state == state, here.is_state_untrusted) == (stays, stays)


async def test_a_message_keeps_its_place_and_is_learned_again(memory: Memory, valkey: str) -> None:
    await talk(memory, "I like tea.", f"I have a {CANARY}.", "It rains.")
    await write(memory, HERE, synopsis(3, 4), synopsis(5, 6), Watermark("synopses", 6))
    await write(memory, HERE, Digest(4, f"searched for a {CANARY}"))
    await write(memory, HERE, State("{}"), Watermark(STATE_LEARNER, 6))
    elsewhere = Watermark("facts@c:77:0@5", 6)
    await write(memory, ANNS, Fact(0, f"Has a {CANARY}.", (source(3),), said_at=1))
    await write(memory, ANNS, Watermark(f"facts@{HERE.tag}@5", 6), elsewhere)
    await rewrite(memory)
    assert CANARY.encode() not in await everything_stored(valkey)
    assert await texts(memory) == ["I like tea.", "yes", "I have a cat.", "yes", "It rains.", "yes"]
    here, anns = await memory.scopes.read(HERE), await memory.scopes.read(ANNS)
    assert (here.synopses, here.watermark("synopses"), here.state) == ([], 2, "")
    assert await facts_of(memory, ANNS) == []
    assert set(anns.all(Watermark)) == {Watermark(f"facts@{HERE.tag}@5", 2), elsewhere}


async def test_answers_that_repeat_words_which_an_edit_took_are_not_recalled(
    memory: Memory,
) -> None:
    await talk(memory, "I like tea.", f"I have a {CANARY}.")
    await say(memory, 3, "What do I have?", f"A {CANARY}.")
    await say(memory, 4, "What do I like?", "Tea. Have a cat!")
    await rewrite(memory)
    assert (await memory.scopes.read(HERE)).hidden.keys() == {6}


@pytest.mark.parametrize("how", ["repeat", "clear", "edited"])
async def test_nothing_changes_if_the_entry_is_gone(memory: Memory, valkey: str, how: str) -> None:
    await talk(memory, "I like tea.")
    _, change = await asking(memory)
    if how == "repeat":
        await memory.forgetting.take_out(HERE, [2], change)
    elif how == "clear":
        await clear(memory)
    else:
        assert await memory.mailbox.edit(HERE, 10, lambda _: b"changed")
    stored = await everything_stored(valkey)
    with pytest.raises(LeaseLost):
        await memory.forgetting.take_out(HERE, [1, 2], change)
    assert await everything_stored(valkey) == stored


@pytest.mark.parametrize("is_personal", [False, True])
async def test_new_words_are_learned_not_deleted_ones(memory: Memory, *, is_personal: bool) -> None:
    model, notes = ScriptedModel(), Notes(every=1, is_personal=is_personal)
    model.parts = {"notes": {"text": f"Has a {CANARY}."}}
    memory.enable_learning([notes], model)
    await talk(memory, "I like tea.", f"I have a {CANARY}.", "I dislike rain.", "It rains.")
    await write(memory, HERE, Hidden(5))
    await memory.learn(HERE)
    await rewrite(memory)
    model.parts = {"notes": {"text": "Has a cat."}}
    await memory.turns.commit(await take(memory), [], Cursor())
    await memory.learn(HERE)
    assert notes.batches == [[1, 2, 3, 4, 6, 7, 8], [3, 4, 6, 7, 8]]
    assert "I have a cat." in model.asked[-1][1]
    assert CANARY not in model.asked[-1][1]
    scope = ANNS if is_personal else HERE
    assert "Has a cat." in [fact.text for fact in (await memory.scopes.read(scope)).facts]


async def test_what_a_full_redis_cannot_note_is_noted_after_the_erasure(memory: Memory) -> None:
    await talk(memory, "I like tea.", f"I have a {CANARY}. " + "Yes. " * 40_000)
    await memory.store.journal.note_work(HERE, "first")
    _, change = await asking(memory)
    used = int((await memory.client.info("memory"))["used_memory"])
    async with full_redis(memory.client, used - 50_000):
        await memory.forgetting.take_out(HERE, [3, 4], change)
    [newest] = await memory.client.call("ZRANGE", memory.keys.erasures, -1, -1)
    assert b"|e|1|3-4|" in newest
