"""A server's clock that goes back leaves times in the future behind, which hold nothing up.

Here these times are written; `tests.faults.clocks` has the clock itself jump under whole bots.
"""

from memory.limits.quotas import Quota, Verdict
from memory.memory import Memory
from memory.queue.open_turn import Nothing, OpenTurn
from memory.queue.turns import TurnTimes
from memory.scopes.delta import Cursor
from tests.memory.turns import ANN, HERE, put, take

HOURS_MS = 3 * 3_600_000
LEASE_MS = 30_000


async def test_a_lease_from_before_ends_when_one_taken_now_would(memory: Memory) -> None:
    await put(memory, 1)
    await take(memory)
    lease = memory.keys.scope(HERE).lease
    await memory.client.call("PEXPIRE", lease, HOURS_MS)
    assert await memory.turns.acquire(HERE, Cursor()) == Nothing("held")
    assert 0 < await memory.client.call("PTTL", lease) <= LEASE_MS


async def test_no_bell_is_left_to_a_holder_from_before(memory: Memory) -> None:
    """Its own, if it is dead, is not reclaimed for as long as its lease would last."""
    await put(memory, 1)
    await memory.turns.acquire(HERE, Cursor(), wake_up="1-1|1")
    assert await memory.turns.acquire(HERE, Cursor()) == Nothing("held", "1-1|1")
    await memory.client.call("PEXPIRE", memory.keys.scope(HERE).lease, HOURS_MS)
    assert await memory.turns.acquire(HERE, Cursor()) == Nothing("held")


async def test_a_sweep_rings_for_mail_under_a_lease_from_before(memory: Memory) -> None:
    await put(memory, 1)
    await take(memory)
    assert await memory.sweep.wake_waiting(everything=True) == 0
    await memory.client.call("PEXPIRE", memory.keys.scope(HERE).lease, HOURS_MS)
    assert await memory.sweep.wake_waiting(everything=True) == 1


async def test_a_dead_pollers_lease_from_before_passes_on(memory: Memory) -> None:
    dead, heir = memory.poller_lease(LEASE_MS), memory.poller_lease(LEASE_MS)
    assert await dead.hold()
    await memory.client.call("PEXPIRE", memory.keys.poller, HOURS_MS)
    assert not await heir.hold()
    assert 0 < await memory.client.call("PTTL", memory.keys.poller) <= LEASE_MS


async def test_a_message_from_before_is_not_waited_for(memory: Memory) -> None:
    memory.turns._times = TurnTimes(2_000, 400, 1_000)
    await put(memory, 1)
    await memory.client.call("ZINCRBY", memory.keys.scope(HERE).seen, HOURS_MS, 1)
    assert isinstance(await memory.turns.acquire(HERE, Cursor()), OpenTurn)


async def test_a_turn_parked_before_waits_no_longer_than_it_was_told(memory: Memory) -> None:
    await put(memory, 1)
    turn = await take(memory)
    await memory.turns.park(turn.lease, 60_000)
    await memory.client.call("HINCRBY", memory.keys.scope(HERE).turn, "due", HOURS_MS)
    assert isinstance(await memory.turns.acquire(HERE, Cursor()), OpenTurn)


async def test_a_parked_turn_that_is_rung_for_too_soon_is_rung_for_again(memory: Memory) -> None:
    """Who rings goes by a bot's clock, and the turn by the server's."""
    await put(memory, 1)
    turn = await take(memory)
    await memory.turns.park(turn.lease, 60_000)
    await memory.client.call("ZADD", memory.keys.due, 1, HERE.tag)
    assert await memory.sweep.wake_due() == 1
    assert await memory.turns.acquire(HERE, Cursor()) == Nothing("parked")
    assert await memory.client.call("ZRANGE", memory.keys.due, 0, -1) == [HERE.tag.encode()]


async def test_turns_from_before_do_not_count_in_the_minute(memory: Memory) -> None:
    quota = Quota(turns_per_minute=1, tokens_per_day=0)
    said = [await memory.quotas.admit(ANN, turn, quota) for turn in "abc"]
    assert said == [Verdict.ADMITTED, Verdict.TURNS, Verdict.SILENCED]
    await memory.client.call("ZINCRBY", memory.keys.turns_of(ANN), HOURS_MS, "a")
    await memory.client.call("PEXPIRE", memory.keys.refused_turn_of(ANN), HOURS_MS)
    said = [await memory.quotas.admit(ANN, turn, quota) for turn in "def"]
    assert said == [Verdict.ADMITTED, Verdict.TURNS, Verdict.SILENCED]
