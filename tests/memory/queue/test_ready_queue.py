"""A wake-up goes to one worker, outlives that worker, and only its holder removes it."""

import time
from dataclasses import replace

import pytest

from memory.memory import Memory
from memory.store.keys import Scope
from tests.memory.clients import InterruptedClient
from tests.memory.conftest import memory_of
from tests.memory.turns import ANN, BOB, GROUP, HERE, begin, exchange, put
from tests.memory.work.test_items import reminder, store


async def test_wake_ups_sent_before_the_first_worker_are_read(memory: Memory) -> None:
    await put(memory, 1)
    ready_queue = memory.ready_queue()
    await ready_queue.read(1, 1)  # creates the group
    assert [wake_up.tag for wake_up in await ready_queue.read(5, 1)] == [HERE.tag]


async def test_the_first_worker_cannot_acknowledge_a_reclaimed_wake_up(memory: Memory) -> None:
    dead, alive = memory.ready_queue(), memory.ready_queue()
    await dead.read(1, 1)
    await put(memory, 1)
    [heard] = await dead.read(1, 100)
    [reclaimed] = await alive.reclaim(5, 0)
    assert (reclaimed.entry, reclaimed.deliveries) == (heard.entry, 2)
    assert not await dead.renew(heard)
    await dead.acknowledge(heard)
    assert await memory.client.call("XLEN", memory.keys.ready_queue) == 1
    await alive.acknowledge(reclaimed)
    assert await memory.client.call("XLEN", memory.keys.ready_queue) == 0


async def test_a_wake_up_is_removed_only_if_the_other_delivery_is_still_pending(
    memory: Memory,
) -> None:
    ready_queue, other = memory.ready_queue(), memory.ready_queue()
    await ready_queue.read(1, 1)
    for update_id in (1, 2):
        await put(memory, update_id)
    [held] = await other.read(1, 100)
    [wake_up] = await ready_queue.read(1, 100)
    for delivery in ("", wake_up.delivery, "1-1|1", replace(held, deliveries=2).delivery):
        await ready_queue.acknowledge(wake_up, delivery)
        assert await memory.client.call("XLEN", memory.keys.ready_queue) == 2
    await ready_queue.acknowledge(wake_up, held.delivery)
    assert await memory.client.call("XLEN", memory.keys.ready_queue) == 1


@pytest.mark.parametrize(
    ("wait_ms", "is_reclaimed"), [(0, True), (30_000, False), (90_000, False), (None, False)]
)
async def test_a_postponed_wake_up_is_reclaimed_after_its_wait_and_a_renewed_one_is_not(
    memory: Memory, wait_ms: int | None, *, is_reclaimed: bool
) -> None:
    busy, other = memory.ready_queue(), memory.ready_queue()
    await busy.read(1, 1)
    await put(memory, 1)
    [wake_up] = await busy.read(1, 100)
    if wait_ms is None:
        assert await busy.renew(wake_up)
    else:
        await busy.postpone(wake_up, wait_ms, 60_000)
    assert bool(await other.reclaim(5, 60_000)) == is_reclaimed


async def test_a_sweep_sends_no_second_wake_up_while_one_is_unread_or_pending(
    memory: Memory,
) -> None:
    await memory.ready_queue().read(1, 1)
    for chat in range(1, 4):
        await put(memory, chat, Scope.of_chat(chat))
    await memory.ready_queue().read(1, 1)
    assert await memory.sweep.wake_waiting(everything=True) == 0
    assert await memory.client.call("XLEN", memory.keys.ready_queue) == 3


@pytest.mark.parametrize("hours", [None, -3, 3], ids=["lost", "old", "from the future"])
async def test_a_sweep_relies_on_no_lost_old_or_future_wake_up(
    memory: Memory, hours: int | None
) -> None:
    """An old wake-up may never be read, and nobody reclaims one from the future."""
    await put(memory, 1)
    ready_queue = memory.keys.ready_queue
    await memory.client.call("DEL", ready_queue)
    if hours:
        at = int(time.time() * 1000) + hours * 3_600_000
        await memory.client.call("XADD", ready_queue, at, "c", HERE.tag)
    assert await memory.sweep.wake_waiting(everything=True) == 1
    assert await memory.client.call("XLEN", ready_queue) == 1 + bool(hours)


async def test_a_whole_sweep_lists_an_item_that_its_index_has_lost_also_behind_a_damaged_chat(
    memory: Memory,
) -> None:
    """The index may be on another server. An item may wait for its button, so it has an hour."""
    lost, kept = (reminder(text, due=time.time() - 60) for text in ("lost", "kept"))
    await store(memory, lost, kept)
    await exchange(memory, 1, GROUP)
    await memory.client.call("SET", memory.keys.scope(GROUP).mailbox, "damaged")
    await memory.client.call("ZREM", memory.keys.work, f"{HERE.tag}|{lost.id}")
    for everything, minutes in ((False, [-1]), (True, [-1, 60])):
        await memory.sweep.wake_waiting(everything=everything)
        looks = await memory.client.call("ZRANGE", memory.keys.work, 0, -1, "WITHSCORES")
        assert [round((ms / 1000 - time.time()) / 60) for _, ms in looks] == minutes


async def test_a_parked_turn_is_woken_up_when_it_is_due(memory: Memory) -> None:
    await memory.client.call("ZADD", memory.keys.due, 1, HERE.tag)
    await memory.client.call("ZADD", memory.keys.due, 2**52, "c:9:0")
    assert await memory.sweep.wake_due() == 1
    assert await memory.client.call("ZRANGE", memory.keys.due, 0, -1) == [b"c:9:0"]


@pytest.mark.parametrize("step", ["park", "hand_over"])
async def test_a_wake_up_that_is_taken_before_the_lease_is_given_back_comes_again(
    interrupted: InterruptedClient, step: str
) -> None:
    """Two processes saw the first entry. One takes it at once, the other one late."""
    memory = memory_of(interrupted)
    turn, seen = await begin(memory, 1), list[float]()

    async def take_first() -> None:
        seen.extend(score for _, score in await interrupted.call("ZPOPMIN", memory.keys.due))

    interrupted.behind["ZADD"] = take_first
    await getattr(memory.turns, step)(turn if step == "park" else turn.lease, 1_000)
    request = {"member": HERE.tag, "score": f"{seen[0]:.0f}"}
    assert await memory.scripts["take_due"]([memory.keys.due], request) == 0
    assert await interrupted.call("ZRANGE", memory.keys.due, 0, -1) == [HERE.tag.encode()]


async def test_overdue_learning_is_given_to_one_process_at_a_time(memory: Memory) -> None:
    await exchange(memory, 1)
    assert await memory.sweep.take_late_learning(5) == []
    await memory.client.call("ZADD", memory.keys.learning, 1, HERE.tag)
    assert [await memory.sweep.take_late_learning(5) for _ in range(2)] == [[HERE], []]
    await memory.learn(HERE)
    assert not await memory.client.call("EXISTS", memory.keys.learning)


async def test_two_turns_within_a_second_leave_different_due_times_for_learning(
    memory: Memory,
) -> None:
    learning, notes = [memory.keys.learning], []
    for update_id in range(1, 6):
        await exchange(memory, update_id)
        notes.append(await memory.client.call("ZSCORE", memory.keys.learning, HERE.tag))
    assert len(set(notes)) == 5
    requests = [{"member": HERE.tag, "score": repr(note)} for note in notes]
    taken = [await memory.scripts["take_due"](learning, request) for request in requests]
    assert taken == [0, 0, 0, 0, 1]


async def test_idle_consumers_are_removed_unless_they_have_a_pending_wake_up(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.queue.ready_queue._REMOVE_AFTER_MS", -1)
    gone, holding = memory.ready_queue(), memory.ready_queue()
    assert await gone.remove_consumers() == 0  # before there is a stream
    await gone.read(1, 1)
    await put(memory, 1)
    [wake_up] = await gone.read(1, 100)  # or older servers do not list it
    await gone.acknowledge(wake_up)
    await put(memory, 2)
    [wake_up] = await holding.read(1, 100)
    assert await memory.ready_queue().remove_consumers() == 1
    await holding.acknowledge(wake_up)
    assert await memory.client.call("XLEN", memory.keys.ready_queue) == 0


async def test_only_recently_active_consumers_are_counted(memory: Memory) -> None:
    queues = [memory.ready_queue() for _ in range(3)]
    assert await queues[0].count_consumers(60_000) == 0  # before there is a stream
    await queues[0].read(1, 1)
    for number, ready_queue in enumerate(queues):
        await put(memory, number)
        await ready_queue.read(1, 100)
    assert await queues[0].count_consumers(60_000) == 3
    assert await queues[0].count_consumers(-1) == 0


async def test_an_expired_conversation_leaves_the_index_of_its_people(memory: Memory) -> None:
    wrote = ((HERE, ANN), (GROUP, ANN), (GROUP, BOB))
    for number, (conversation, sender) in enumerate(wrote, start=1):
        await exchange(memory, number, conversation, sender=sender)
    await memory.client.call("HSET", memory.keys.person(ANN), "c:99:0", "written without an update")
    assert await memory.sweep.prune_people() == 1
    assert await tags(memory, ANN) == {HERE.tag, GROUP.tag}

    # Redis drops the keys, and the sweep the index. One of both is not enough.
    await memory.client.call("DEL", *memory.keys.scope(HERE))
    assert await memory.sweep.prune_people() == 0
    await memory.client.call("ZREM", memory.keys.index_of(HERE), HERE.tag)
    assert await memory.sweep.prune_people() == 1
    assert (await tags(memory, ANN), await tags(memory, BOB)) == ({GROUP.tag}, {GROUP.tag})

    await memory.client.call("DEL", *memory.keys.scope(GROUP))
    await memory.client.call("ZREM", memory.keys.index_of(GROUP), GROUP.tag)
    assert await memory.sweep.prune_people() == 2
    assert (await tags(memory, ANN), await tags(memory, BOB)) == (set(), set())


async def tags(memory: Memory, person: int) -> set[str]:
    return {tag.decode() for tag in await memory.client.call("HKEYS", memory.keys.person(person))}
