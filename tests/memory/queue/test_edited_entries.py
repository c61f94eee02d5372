"""A message that waits, or whose turn has no reply yet, gets new words once."""

from collections.abc import Callable

import pytest

from memory.memory import Memory
from memory.queue.mailbox import Entry
from memory.queue.open_turn import NoTurn
from memory.scopes.log import Cursor
from memory.store.errors import LeaseLost
from tests.memory.turns import ANN, HERE, begin, close, put, take, texts


def from_to(old: str, new: str) -> Callable[[bytes], bytes | None]:
    """Return what changes one body, and leaves alone a body that has the new words already."""

    def edited(body: bytes) -> bytes | None:
        return new.encode() if body in (old.encode(), new.encode()) else None

    return edited


async def test_a_waiting_message_is_answered_with_its_new_words(memory: Memory) -> None:
    await put(memory, 1)
    await put(memory, 2)
    assert await memory.mailbox.edit(HERE, 3, from_to("text 2", "better"))
    await close(memory, await take(memory))
    assert await texts(memory) == ["text 1 better", "yes"]


async def test_a_turn_without_a_reply_begins_again_and_this_is_no_failure(memory: Memory) -> None:
    turn = await begin(memory, 1)
    for _ in range(2):
        assert await memory.mailbox.edit(HERE, 3, from_to("text 1", "better"))
    with pytest.raises(LeaseLost):
        await memory.turns.write_outbox(turn, b"[]")
    again = await take(memory)
    assert (again.id, again.attempts, again.entries[0].body) == (turn.id, 1, b"better")
    await close(memory, again)
    assert await texts(memory) == ["better", "yes"]


async def test_an_older_edit_that_is_delivered_again_changes_nothing(memory: Memory) -> None:
    await put(memory, 1)
    assert await memory.mailbox.edit(HERE, 3, from_to("text 1", "second"))
    assert await memory.mailbox.edit(HERE, 4, from_to("second", "third"))
    assert await memory.mailbox.edit(HERE, 3, from_to("third", "second"))
    assert (await take(memory)).entries[0].body == b"third"


async def test_an_edit_that_is_delivered_again_wakes_its_conversation_up(memory: Memory) -> None:
    """The process that stored it may have died before it sent the wake-up."""
    keys = memory.keys
    await put(memory, 1)
    assert await memory.mailbox.edit(HERE, 3, from_to("text 1", "better"))
    await memory.client.call("DEL", keys.ready_queue)
    assert await memory.mailbox.edit(HERE, 3, from_to("text 1", "better"))
    assert await memory.client.call("XLEN", keys.ready_queue) == 1


async def test_an_edit_after_a_stop_is_answered(memory: Memory) -> None:
    await begin(memory, 1)
    assert await memory.mailbox.stop(HERE, 2, ANN) == "stopped"
    assert await memory.mailbox.edit(HERE, 3, from_to("text 1", "better"))
    assert not (await take(memory)).is_stopped


async def test_a_message_with_a_reply_is_not_changed(memory: Memory) -> None:
    turn = await begin(memory, 1)
    await memory.turns.write_outbox(turn, b"[]")
    assert not await memory.mailbox.edit(HERE, 3, from_to("text 1", "better"))
    assert not await memory.mailbox.edit(HERE, 3, from_to("text 9", "better"))
    await memory.turns.mark_sending(turn, 0, ())


async def test_a_dead_letter_keeps_only_the_new_words(memory: Memory) -> None:
    turn = await begin(memory, 1)
    await memory.dead_letters.set_aside(turn, "Error", b"[]")
    assert await memory.mailbox.edit(HERE, 3, from_to("text 1", "better"))
    await memory.turns.commit(turn, [], Cursor())
    await memory.turns.hand_over(turn.lease)
    assert await memory.dead_letters.retry(HERE, turn.id) == "begun"
    assert (await take(memory)).entries[0].body == b"better"


@pytest.mark.parametrize("is_open", [False, True])
async def test_a_dropped_message_is_not_answered(memory: Memory, *, is_open: bool) -> None:
    await put(memory, 1)
    turn = await take(memory) if is_open else None
    for _ in range(2):
        await memory.mailbox.drop(HERE, lambda entry: entry.body == b"text 1")
    assert memory.store.erased.is_set()  # the embedded server rewrites its file
    if turn:
        with pytest.raises(LeaseLost):
            await memory.turns.write_outbox(turn, b"[]")
    assert await memory.turns.acquire(HERE, Cursor()) == NoTurn("empty")


async def test_an_entry_that_is_not_the_bots_own_is_left_alone(memory: Memory) -> None:
    await memory.mailbox.put(HERE, Entry(1, ANN, is_alone=True, body=b"a|b|c"))
    assert not await memory.mailbox.edit(HERE, 3, from_to("text 1", "better"))
