"""A run ends early for messages that follow quickly and for a stop, not otherwise."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace

import pytest

from memory.memory import Memory
from memory.queue.mailbox import Entry
from memory.queue.open_turn import Interrupted, NoTurn, OpenTurn
from memory.queue.turn_store import TurnTimes
from memory.scopes.log import Cursor
from memory.store.errors import LeaseLost
from tests.memory.conftest import memory_of
from tests.memory.turns import ANN, BOB, GROUP, HERE, begin, close, put, take
from tests.valkey import opened

Step = Callable[[Memory, OpenTurn], Awaitable[None]]

COALESCE_MS, MAX_COALESCE_MS = 400, 2_000


@pytest.fixture
def memory(memory: Memory) -> Memory:
    memory.turns._times = TurnTimes(60_000, COALESCE_MS, MAX_COALESCE_MS)
    return memory


@pytest.fixture
async def other_process(valkey: str) -> AsyncIterator[Memory]:
    async with opened(valkey, max_connections=3) as client:
        yield memory_of(client)


async def renew(memory: Memory, turn: OpenTurn) -> None:
    await memory.turns.renew(turn)


async def write_outbox(memory: Memory, turn: OpenTurn) -> None:
    await memory.turns.write_outbox(turn, b"[]")


either_step = pytest.mark.parametrize("step", [renew, write_outbox])


async def arrived(memory: Memory, after_ms: Mapping[int, int]) -> None:
    """Let updates have arrived so many ms after the first one."""
    began_ms = int(time.time() * 1000)
    for update_id, ms in after_ms.items():
        await memory.client.call("ZADD", memory.keys.scope(HERE).seen, began_ms + ms, update_id)


async def why(step: Step, memory: Memory, turn: OpenTurn) -> str:
    """Return why the run has to end, "" if it may go on."""
    try:
        await step(memory, turn)
    except Interrupted as ended:
        return ended.why
    return ""


async def begin_again(memory: Memory, turn: OpenTurn) -> OpenTurn:
    begun = await memory.turns.acquire(HERE, Cursor(), turn.lease.token)
    assert isinstance(begun, OpenTurn)
    return begun


def ids(turn: OpenTurn) -> list[int]:
    return [entry.update_id for entry in turn.entries]


@either_step
async def test_a_message_that_follows_quickly_joins_the_first(memory: Memory, step: Step) -> None:
    turn = await begin(memory, 1)
    assert await why(renew, memory, turn) == ""
    for update_id in (2, 3, 4):
        await put(memory, update_id)
    await arrived(memory, {1: 0, 2: COALESCE_MS - 1, 3: 2 * COALESCE_MS - 2, 4: 3 * COALESCE_MS})
    assert await why(step, memory, turn) == "again"
    again = await begin_again(memory, turn)
    assert (ids(again), again.id, again.attempts) == ([1, 2, 3], "1", 1)
    assert ids(await begin_again(memory, turn)) == [1, 2, 3], "its answer may be lost"
    assert await why(step, memory, again) == ""
    then = (await close(memory, again)).then
    assert isinstance(then, OpenTurn)
    assert ids(then) == [4]


async def test_messages_follow_for_so_long_at_most(memory: Memory) -> None:
    turn = await begin(memory, 0)
    for number in range(1, 8):
        await put(memory, number)
        await arrived(memory, {each: each * (COALESCE_MS - 50) for each in range(number + 1)})
        if await why(renew, memory, turn) == "again":
            turn = await begin_again(memory, turn)
    assert ids(turn) == [0, 1, 2, 3, 4, 5]


async def test_a_message_that_overtook_an_earlier_one_lets_it_come_first(memory: Memory) -> None:
    turn = await begin(memory, 2)
    await put(memory, 1)
    await arrived(memory, {2: 0, 1: 5})
    assert await why(renew, memory, turn) == "again"
    assert ids(await begin_again(memory, turn)) == [1, 2]


@either_step
@pytest.mark.parametrize("is_command", [True, False])
async def test_a_turn_that_was_overtaken_over_another_connection_comes_first(
    memory: Memory, step: Step, *, is_command: bool
) -> None:
    """A command, or the message of somebody else, is not joined with the turn."""
    turn = await begin(memory, 2)
    earlier = Entry(1, ANN if is_command else BOB, is_command, b"earlier")
    await memory.mailbox.put(HERE, earlier)
    await arrived(memory, {2: 0, 1: 5})
    assert await why(step, memory, turn) == "again"
    first = await begin_again(memory, turn)
    assert (ids(first), first.attempts) == ([1], 1)
    assert await why(renew, memory, first) == ""
    then = (await close(memory, first)).then
    assert isinstance(then, OpenTurn)
    assert (ids(then), then.attempts) == ([2], 1)


@pytest.mark.parametrize("state", ["late", "shown", "failed", "stopped", "stored", "older"])
async def test_a_turn_goes_on_although_it_has_overtaken_another(memory: Memory, state: str) -> None:
    """What came before the turn began was set aside or put back: it has not been overtaken."""
    turn = await begin(memory, 2)
    await memory.mailbox.put(HERE, Entry(1, BOB, is_alone=False, body=b"earlier"))
    await arrived(memory, {2: 0, 1: {"late": COALESCE_MS, "older": -5}.get(state, 5)})
    name = memory.keys.scope(HERE).turn
    if state == "shown":
        turn.run.shown = "Well"
    elif state == "stored":
        await memory.client.call("HSET", name, "outbox", "[]")
    elif state in ("failed", "stopped"):
        await memory.client.call("HSET", name, {"failed": "failures"}.get(state, state), 1)
    expected = "stopped" if state == "stopped" else ""
    assert await why(renew, memory, turn) == expected
    if state != "shown":
        assert ids(await begin_again(memory, turn)) == [2]


@either_step
async def test_a_run_goes_on_if_a_part_of_its_reply_is_shown(memory: Memory, step: Step) -> None:
    turn = await begin(memory, 1)
    await put(memory, 2)
    turn.run.shown = ""
    assert await why(step, memory, turn) == ""


async def test_a_stored_reply_is_sent_whatever_follows(memory: Memory) -> None:
    turn = await begin(memory, 1)
    await write_outbox(memory, turn)
    await put(memory, 2)
    await memory.client.call("HSET", memory.keys.scope(HERE).turn, "stopped", 1)
    assert await why(renew, memory, turn) == ""
    assert await why(write_outbox, memory, turn) == ""
    assert ids(await begin_again(memory, turn)) == [1]


@either_step
async def test_only_messages_of_the_same_person_interrupt_and_commands_do_not(
    memory: Memory, step: Step
) -> None:
    await put(memory, 1, GROUP)
    await memory.mailbox.put(HERE, Entry(2, ANN, is_alone=True, body=b"/export"))
    asked, command = await take(memory, GROUP), await take(memory)
    await put(memory, 3, GROUP, sender=BOB)
    await put(memory, 4, GROUP)
    await put(memory, 5)
    assert await why(step, memory, asked) == ""
    assert await why(step, memory, command) == ""
    await close(memory, command)
    await memory.mailbox.put(HERE, Entry(6, ANN, is_alone=True, body=b"/help"))
    text = await memory.turns.acquire(HERE, Cursor())
    assert not isinstance(text, OpenTurn) or await why(step, memory, text) == ""


async def test_forwarded_messages_may_follow_a_comment_a_second_later(memory: Memory) -> None:
    turn = await begin(memory, 1)
    for update_id in (2, 3):
        entry = Entry(update_id, ANN, is_alone=False, body=b"news", is_grouped=True)
        await memory.mailbox.put(HERE, entry)
    await arrived(memory, {1: 0, 2: 900, 3: 1_000})
    assert await why(renew, memory, turn) == "again"
    again = await begin_again(memory, turn)
    assert [entry.is_grouped for entry in again.entries] == [False, True, True]


@either_step
async def test_a_stop_ends_a_run_even_if_something_is_shown(memory: Memory, step: Step) -> None:
    turn = await begin(memory, 1)
    turn.run.shown = "Once"
    await memory.client.call("HSET", memory.keys.scope(HERE).turn, "stopped", 1)
    assert await why(step, memory, turn) == "stopped"
    assert (await begin_again(memory, turn)).is_stopped


async def test_a_stopped_turn_stays_stopped_when_it_is_handed_over(memory: Memory) -> None:
    turn = await begin(memory, 1)
    await memory.client.call("HSET", memory.keys.scope(HERE).turn, "stopped", 1)
    await memory.turns.hand_over(turn.lease)
    heir = await take(memory)
    assert heir.is_stopped
    await write_outbox(memory, heir)


async def test_a_turn_that_was_cleared_is_not_begun_again(memory: Memory) -> None:
    turn = await begin(memory, 1)
    await put(memory, 2)
    await memory.client.call("DEL", memory.keys.scope(HERE).lease, memory.keys.scope(HERE).turn)
    assert await memory.turns.acquire(HERE, Cursor(), turn.lease.token) == NoTurn("lost")


async def test_another_process_hears_at_once_that_a_message_followed(
    memory: Memory, other_process: Memory
) -> None:
    signals = other_process.turns.signals
    listening = asyncio.create_task(signals.listen())
    with signals.heard(HERE) as here, signals.heard(GROUP) as there:
        async with asyncio.timeout(60):
            await there.wait()  # all are told when the subscription begins
            here.clear()
            there.clear()
            await begin(memory, 1)
            await put(memory, 2)
            await here.wait()
        assert not there.is_set()
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)


async def test_signals_survive_a_broken_connection(memory: Memory, other_process: Memory) -> None:
    signals = other_process.turns.signals
    listening = asyncio.create_task(signals.listen())
    with signals.heard(HERE) as here:
        async with asyncio.timeout(60):
            await here.wait()
            here.clear()
            await memory.client.call("CLIENT KILL", "TYPE", "pubsub")
            await here.wait()
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)


async def test_a_process_without_a_connection_to_spare_hears_nothing(valkey: str) -> None:
    async with opened(valkey, max_connections=2) as client:
        await memory_of(client, bot=1).turns.signals.listen()


async def stop(memory: Memory, update_id: int, person: int = ANN, *, draft: int = 0) -> str:
    return await memory.mailbox.stop(HERE, update_id, person, draft)


async def test_a_stop_marks_the_open_turn_once_and_signals(memory: Memory) -> None:
    turn = await begin(memory, 1)
    assert [await stop(memory, 2, BOB), await stop(memory, 2)] == ["not_yours", "stopped"]
    assert [await stop(memory, 2), await stop(memory, 1)] == ["answered", "answered"]
    with pytest.raises(Interrupted, match="stopped"):
        await memory.turns.write_outbox(turn, b"reply")
    stopped = replace(turn, is_stopped=True)
    await memory.turns.renew(stopped)  # does not end the run that stores what was shown
    await memory.turns.write_outbox(stopped, b"shown")
    committed = await memory.turns.commit(stopped, [], Cursor())
    assert committed.then == NoTurn("empty")
    await begin(memory, 3)
    assert [await stop(memory, 2), await stop(memory, 4)] == ["answered", "stopped"]
    # After a week without updates Telegram numbers on from a random id, perhaps a lower one.
    await memory.client.call("HSET", memory.keys.scope(HERE).meta, "stopped_at", 1)
    assert await stop(memory, 3) == "stopped"


async def test_the_first_stored_reply_of_a_turn_stays(memory: Memory) -> None:
    """A run that was ended may have sent its reply already, and the call arrives late."""
    ended = await begin(memory, 1)
    await stop(memory, 2)
    stopped = replace(ended, is_stopped=True)
    await memory.turns.write_outbox(stopped, b"shown")
    await memory.turns.mark_sending(stopped, 1, (8,))
    await memory.turns.write_outbox(stopped, b"shown")  # its answer may be lost
    with pytest.raises(LeaseLost):
        await memory.turns.write_outbox(ended, b"reply")
    again = await begin_again(memory, stopped)
    assert (again.outbox, again.sending, again.sent) == (b"shown", 1, (8,))


async def test_a_stop_after_the_reply_was_stored_changes_nothing(memory: Memory) -> None:
    turn = await begin(memory, 1)
    await memory.turns.write_outbox(turn, b"reply")
    assert await stop(memory, 2) == "answered"
    assert not (await begin_again(memory, turn)).is_stopped


async def test_a_stop_is_only_for_what_was_asked_before_it_and_for_its_draft(
    memory: Memory,
) -> None:
    assert await stop(memory, 1) == "nothing"
    await begin(memory, 5)
    assert [await stop(memory, 4), await stop(memory, 6, draft=4)] == ["nothing", "nothing"]
    assert await stop(memory, 7, draft=5) == "stopped"


async def test_a_question_that_waits_for_a_worker_is_stopped_as_well(memory: Memory) -> None:
    for update_id in (1, 3):  # also after another turn was closed
        await put(memory, update_id)
        stops = [await stop(memory, update_id + 1) for _ in range(2)]
        assert stops == ["stopped"] * 2  # each wakes it up
        assert await memory.client.call("XLEN", memory.keys.ready_queue) == 3 * (update_id + 1) // 2
        turn = await take(memory)
        assert (ids(turn), turn.is_stopped, turn.attempts) == ([update_id], True, 1)
        await close(memory, turn)


async def test_an_admin_stops_the_turn_of_another_person(memory: Memory) -> None:
    await begin(memory, 1)
    assert await memory.mailbox.stop(HERE, 2, BOB, as_admin=True) == "stopped"
