"""Each step of a turn keeps its promise, and repeating a step changes nothing."""

from asyncio import gather
from dataclasses import replace
from functools import partial

import pytest

from memory.memory import Memory
from memory.queue.mailbox import Entry, Outcome
from memory.queue.open_turn import Closing, NoTurn, OpenTurn, QuestionErased, Superseded
from memory.scopes.changes import Revision
from memory.scopes.log import Cursor
from memory.store.errors import LeaseLost, StoreRefused
from tests.memory.clients import full_redis
from tests.memory.turns import (
    ANN,
    BOB,
    GROUP,
    HERE,
    begin,
    clear,
    close,
    exchange,
    exchange_of,
    put,
    take,
    texts,
)


async def _expire(memory: Memory) -> None:
    await memory.client.call("DEL", memory.keys.scope(HERE).lease)


async def test_an_update_is_taken_once_and_a_repeat_sends_a_wake_up(memory: Memory) -> None:
    """One that a damaged mailbox could not take is taken when the key is mended."""
    mailbox, entry = memory.keys.scope(HERE).mailbox, Entry(1, ANN, is_alone=False, body=b"text")
    put_message = partial(memory.mailbox.put, HERE, entry, "7:11")
    await memory.client.call("SET", mailbox, "damaged")
    with pytest.raises(StoreRefused):
        await put_message()
    await memory.client.call("DEL", mailbox)
    assert [await put_message(), await put_message()] == [Outcome.TAKEN, Outcome.DUPLICATE]
    assert await memory.client.call("XLEN", memory.keys.ready_queue) == 2


async def test_messages_are_taken_by_their_ids_a_command_alone_and_at_most_32_of_one_sender(
    memory: Memory,
) -> None:
    for update_id in (*range(5, 38), 3, 1, 2):
        await put(memory, update_id, GROUP, sender=BOB if update_id == 3 else ANN)
    await memory.mailbox.put(GROUP, Entry(4, ANN, is_alone=True, body=b"/new"))
    turn: object = await take(memory, GROUP)
    taken = []
    while isinstance(turn, OpenTurn):
        taken.append([entry.update_id for entry in turn.entries])
        turn = (await close(memory, turn)).then
    assert taken == [[1, 2], [3], [4], [*range(5, 37)], [37]]


async def test_commit_gives_the_lease_back_when_nothing_waits(memory: Memory) -> None:
    committed = await exchange(memory, 1)
    assert committed.then == NoTurn("empty")
    assert not await memory.client.call("EXISTS", memory.keys.scope(HERE).lease)


async def test_commit_removes_only_the_taken_ones_and_a_repeat_changes_nothing(
    memory: Memory,
) -> None:
    turn = await begin(memory, 1)
    await put(memory, 2)
    first = await close(memory, turn)
    again = await memory.turns.commit(turn, exchange_of(turn), Cursor())
    assert (again.exchange, again.first_seq) == (first.exchange, first.first_seq)
    assert isinstance(again.then, OpenTurn)
    assert (again.then.id, again.then.attempts) == ("2", 1)
    assert await texts(memory) == ["text 1", "yes"]


async def test_a_commit_repeated_without_its_lease_says_that_it_is_lost(memory: Memory) -> None:
    """The holder would acknowledge the only wake-up of the turn that the first call has begun."""
    turn = await begin(memory, 1)
    await put(memory, 2)
    await close(memory, turn)
    await _expire(memory)
    again = await memory.turns.commit(turn, exchange_of(turn), Cursor())
    assert again.then == NoTurn("lost")


async def test_a_repeated_commit_is_recognized_after_later_turns(memory: Memory) -> None:
    """Even after an erasure: the last part already counted as sent."""
    turns = []
    for update_id in range(1, 10):
        await put(memory, update_id)
        turns.append(await take(memory))
        await close(memory, turns[-1])
    meta = memory.keys.scope(HERE).meta
    await memory.client.call("HINCRBY", meta, "erasure", 1)
    with pytest.raises(Superseded):
        await memory.turns.commit(turns[1], exchange_of(turns[1]), Cursor())
    with pytest.raises(LeaseLost) as refusal:
        await memory.turns.commit(turns[0], exchange_of(turns[0]), Cursor())
    assert refusal.type is QuestionErased


async def test_a_dead_holders_turn_is_taken_over_with_its_outbox(memory: Memory) -> None:
    dead = await begin(memory, 1)
    await memory.turns.write_outbox(dead, b"reply")
    await memory.turns.mark_sending(dead, 2, (100, 101))
    await _expire(memory)
    turn = await begin(memory, 2)
    assert (turn.id, turn.outbox, turn.sending, turn.sent) == ("1", b"reply", 2, (100, 101))
    assert [entry.update_id for entry in turn.entries] == [1]


async def test_attempts_without_an_outbox_are_counted(memory: Memory) -> None:
    await put(memory, 1)
    attempts = []
    for _ in range(3):
        attempts.append((await take(memory)).attempts)
        await _expire(memory)
    assert attempts == [1, 2, 3]


async def test_an_erasure_does_not_count_as_a_failed_attempt(memory: Memory) -> None:
    await put(memory, 1, GROUP, sender=BOB)
    request = {"receipt": "another receipt", "person": str(ANN), "last_update": "1", "until": 0}
    for erasing in (
        memory.scopes.update(GROUP, lambda _: Revision()),
        memory.forgetting.erase_share(GROUP, ANN, 0, "a receipt"),
        memory.store.run("erase_person", GROUP, request),
        memory.scopes.update(GROUP, lambda _: Revision()),
    ):
        turn = await take(memory, GROUP)
        assert turn.attempts == 1
        await erasing
        with pytest.raises(LeaseLost):
            await memory.turns.write_outbox(turn, b"[]")


async def test_every_step_with_an_old_lease_is_refused(memory: Memory) -> None:
    stale = await begin(memory, 1)
    await _expire(memory)
    held = await take(memory)
    await memory.turns.hand_over(stale.lease)
    await memory.turns.renew(held)
    for step in (
        memory.turns.renew(stale),
        memory.turns.write_outbox(stale, b"late"),
        memory.turns.mark_sending(stale, 1, ()),
        memory.turns.park(stale, 1),
        memory.dead_letters.set_aside(stale, "ValueError", b"[]"),
        memory.turns.commit(stale, exchange_of(stale), Cursor()),
    ):
        with pytest.raises(LeaseLost):
            await step
    assert (await texts(memory), await memory.dead_letters.listed()) == ([], [])


async def test_a_refused_step_says_whether_the_part_just_sent_may_stay(memory: Memory) -> None:
    """The refused step may repeat one that was carried out, whose answer was lost."""
    stale = await begin(memory, 1)
    await memory.turns.write_outbox(stale, b"reply")
    await memory.turns.mark_sending(stale, 1, (100,))
    await _expire(memory)
    successor = await take(memory)

    async def refusals() -> list[object]:
        marks = [memory.turns.mark_sending(stale, 1, (sent,)) for sent in (100, 101)]
        commit = memory.turns.commit(stale, exchange_of(stale), Cursor())
        return [type(each) for each in await gather(*marks, commit, return_exceptions=True)]

    assert await refusals() == [Superseded, LeaseLost, LeaseLost]
    said, answer = exchange_of(successor)
    said, answer = replace(said, message_ids=(101,)), replace(answer, message_ids=(100, 102))
    await memory.turns.commit(successor, [said, answer], Cursor())
    assert await refusals() == [Superseded, Superseded, LeaseLost]
    # Something else was erased since: the history still says which messages show the answer.
    meta = memory.keys.scope(HERE).meta
    await memory.client.call("HINCRBY", meta, "erasure", 1)
    assert await refusals() == [Superseded, LeaseLost, LeaseLost]
    await memory.client.call("HINCRBY", meta, "erasure", -1)
    for update_id in range(2, 10):
        await exchange(memory, update_id)
    assert await refusals() == [Superseded, Superseded, Superseded]
    await clear(memory, 10, HERE)
    assert await refusals() == [QuestionErased, QuestionErased, QuestionErased]


async def test_a_refused_step_says_whether_the_question_was_erased(memory: Memory) -> None:
    """If it still waits, another worker will show a reply to it. Then a former reply may stay."""
    turn = await begin(memory, 1)
    await memory.turns.write_outbox(turn, b"reply")

    async def refusals() -> list[object]:
        steps = (
            memory.turns.mark_sending(turn, 0, ()),
            memory.turns.commit(turn, exchange_of(turn), Cursor()),
        )
        return [type(each) for each in await gather(*steps, return_exceptions=True)]

    await memory.client.call("HINCRBY", memory.keys.scope(HERE).meta, "erasure", 1)
    assert await refusals() == [LeaseLost, LeaseLost]
    await clear(memory, 5, HERE)
    assert await refusals() == [QuestionErased, QuestionErased]


async def test_a_parked_turn_waits_without_a_lease_until_it_is_due(memory: Memory) -> None:
    turn = await begin(memory, 1)
    await memory.turns.write_outbox(turn, b"reply")
    keys = memory.keys.scope(HERE)
    for key in (keys.meta, keys.turn, keys.mailbox):
        await memory.client.call("EXPIRE", key, 3_600)  # the turn began nearly a day ago
    await memory.turns.park(turn, 86_400_000)
    assert await memory.turns.acquire(HERE, Cursor()) == NoTurn("parked")
    due = int(await memory.client.call("HGET", keys.turn, "due"))
    for key in (keys.meta, keys.turn, keys.mailbox):
        assert await memory.client.call("PEXPIRETIME", key) > due
    await memory.client.call("HSET", keys.turn, "due", 1)
    assert (await take(memory)).outbox == b"reply"


async def test_a_turn_that_has_begun_is_finished_even_if_redis_is_full(memory: Memory) -> None:
    """Else the model would be asked again, or the part just sent would be sent again."""
    turn = await begin(memory, 1)
    async with full_redis(memory.client):
        await memory.turns.write_outbox(turn, b"three parts")
        for part, sent in ((1, (5,)), (2, (5, 6))):
            await memory.turns.mark_sending(turn, part, sent)
    await _expire(memory)
    again = await take(memory)
    assert (again.sending, again.sent) == (2, (5, 6))
    async with full_redis(memory.client):
        assert (await memory.turns.commit(again, exchange_of(again), Cursor())).exchange == 1


async def test_loading_brings_only_what_is_newer_than_the_cursor(memory: Memory) -> None:
    for update_id in (1, 2, 3):
        await exchange(memory, update_id)
    await put(memory, 4)
    turn = await memory.turns.acquire(HERE, Cursor(message=4, version=("0", "0")))
    assert isinstance(turn, OpenTurn)
    assert turn.loaded.messages is not None
    assert [seq for seq, _ in turn.loaded.messages.entries] == [5, 6]
    assert turn.loaded.messages.length == 6


async def test_a_new_session_begins_after_the_closed_turn(memory: Memory) -> None:
    await exchange(memory, 1)
    turn = await begin(memory, 2)
    await memory.turns.commit(turn, [], Cursor(), closing=Closing(ends_session=True))
    await put(memory, 3)
    assert (await take(memory)).loaded.session == 2


async def test_a_deferred_turn_is_dissolved_and_takes_later_messages_along(memory: Memory) -> None:
    deferred = await begin(memory, 1)
    await memory.turns.hand_over(deferred.lease, 60_000)
    keys = memory.keys.scope(HERE)
    assert await memory.client.call("EXISTS", keys.lease) == 0
    assert await memory.client.call("EXISTS", keys.turn) == 0
    assert await memory.client.call("ZSCORE", memory.keys.due, HERE.tag) is not None
    turn = await begin(memory, 2)
    assert ([entry.update_id for entry in turn.entries], turn.attempts) == ([1, 2], 1)


async def test_a_deferred_turn_keeps_its_failures(memory: Memory) -> None:
    await put(memory, 1)
    await memory.turns.note_failure(await take(memory), "ValueError")
    await memory.turns.hand_over((await take(memory)).lease, 60_000)
    turn = await take(memory)
    assert (turn.failures, turn.attempts) == (1, 2)
