"""After the server's clock went back, stored times lie in the future. They must block nothing.

Here these times are written; `tests.lab.faults.clocks` has the clock itself jump under whole bots.
"""

from memory.limits.quotas import Quota, Verdict
from memory.memory import Memory
from memory.queue.open_turn import NoTurn, OpenTurn
from memory.scopes.log import Cursor
from tests.memory.turns import ANN, HERE, begin, put

HOURS_MS = 3 * 3_600_000
LEASE_MS = 30_000


async def test_a_lease_from_the_future_or_without_an_end_is_cut(memory: Memory) -> None:
    await begin(memory, 1)
    lease = memory.keys.scope(HERE).lease
    for change in (("PEXPIRE", lease, HOURS_MS), ("PERSIST", lease)):
        await memory.client.call(*change)
        assert await memory.turns.acquire(HERE, Cursor()) == NoTurn("held")
        assert 0 < await memory.client.call("PTTL", lease) <= LEASE_MS


async def test_a_wake_up_is_kept_when_the_lease_is_from_the_future(memory: Memory) -> None:
    """If the holder is dead, nobody reclaims its own wake-up before the clock has caught up.

    The first caller cuts the lease, so the second one finds it as long as any other.
    """
    await put(memory, 1)
    await memory.turns.acquire(HERE, Cursor(), wake_up="1-1|1")
    assert await memory.turns.acquire(HERE, Cursor()) == NoTurn("held", "1-1|1")
    await memory.client.call("PEXPIRE", memory.keys.scope(HERE).lease, HOURS_MS)
    for _ in range(2):
        assert await memory.turns.acquire(HERE, Cursor()) == NoTurn("held")


async def test_neither_a_message_nor_a_sweep_counts_a_lease_from_the_future(memory: Memory) -> None:
    await begin(memory, 1)
    await put(memory, 2)
    assert await memory.sweep.wake_waiting(everything=True) == 0
    assert await memory.client.call("XLEN", memory.keys.ready_queue) == 1
    await memory.client.call("PEXPIRE", memory.keys.scope(HERE).lease, HOURS_MS)
    await put(memory, 3)
    assert await memory.sweep.wake_waiting(everything=True) == 1
    assert await memory.client.call("XLEN", memory.keys.ready_queue) == 3


async def test_another_process_gets_a_damaged_lease_or_one_from_the_future(memory: Memory) -> None:
    dead, heir = (memory.store.lease(memory.keys.poller, LEASE_MS) for _ in range(2))
    assert await dead.hold()
    await memory.client.call("PEXPIRE", memory.keys.poller, HOURS_MS)
    assert not await heir.hold()
    assert 0 < await memory.client.call("PTTL", memory.keys.poller) <= LEASE_MS
    await memory.client.call("HSET", memory.keys.sweeper, "damaged", 1)
    assert await memory.store.lease(memory.keys.sweeper, LEASE_MS).hold()


async def test_a_parked_turn_waits_no_longer_than_its_pause(memory: Memory) -> None:
    turn = await begin(memory, 1)
    await memory.turns.park(turn, 60_000)
    await memory.client.call("HINCRBY", memory.keys.scope(HERE).turn, "due", HOURS_MS)
    assert isinstance(await memory.turns.acquire(HERE, Cursor()), OpenTurn)


async def test_a_parked_turn_that_is_woken_up_too_early_is_woken_up_again(memory: Memory) -> None:
    """Wake-ups follow the clock of a bot, and turns that of the server."""
    turn = await begin(memory, 1)
    await memory.turns.park(turn, 60_000)
    await memory.client.call("ZADD", memory.keys.due, 1, HERE.tag)
    assert await memory.sweep.wake_due() == 1
    assert await memory.turns.acquire(HERE, Cursor()) == NoTurn("parked")
    assert await memory.client.call("ZRANGE", memory.keys.due, 0, -1) == [HERE.tag.encode()]


async def test_turns_from_the_future_do_not_count_in_the_minute(memory: Memory) -> None:
    quota = Quota(turns=1)
    said = [await memory.quotas.admit(ANN, turn, quota) for turn in "abc"]
    assert said == [Verdict.ADMITTED, Verdict.TURNS, Verdict.SILENCED]
    await memory.client.call("ZINCRBY", memory.keys.usage("turns", ANN), HOURS_MS, "a")
    await memory.client.call("PEXPIRE", memory.keys.usage("refused", ANN), HOURS_MS)
    said = [await memory.quotas.admit(ANN, turn, quota) for turn in "def"]
    assert said == [Verdict.ADMITTED, Verdict.TURNS, Verdict.SILENCED]
