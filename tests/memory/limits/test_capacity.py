"""Telling admins, and the reserve for the day when writes are refused."""

import asyncio
from time import time

import pytest

from memory.limits.alerts import AlertLog, CapacityAlert, Level
from memory.limits.capacity import CapacityMonitor
from memory.limits.dropping import Dropped
from memory.memory import Memory
from memory.store.client import RedisClient
from memory.store.errors import StoreFull
from memory.store.keys import Scope
from memory.text.tokens import TokenCounter
from tests.memory.conftest import OPTIONS
from tests.memory.limits.admins import Admins
from tests.memory.limits.conftest import PLAN_BYTES
from tests.memory.limits.filling import empty, fill, fill_up
from tests.memory.limits.old_days import DAY_S, OldDays
from tests.memory.turns import close, put, take, texts
from tests.valkey import ValkeyServer

ANN = Scope.of_chat(7)


@pytest.fixture
def keeper(memory: Memory) -> CapacityMonitor:
    return memory.capacity


async def test_where_nobody_tells_the_size_nothing_is_done(
    keeper: CapacityMonitor, small_server: ValkeyServer, memory: Memory
) -> None:
    await fill(memory, 0.95)
    small_server.ask("CONFIG SET maxmemory 0")
    admins = Admins()
    assert await keeper.check(admins.tell) is Level.NORMAL
    assert (admins.told, await memory.client.call("DBSIZE")) == ([], 1)

    told = CapacityMonitor(memory.store, PLAN_BYTES, OPTIONS.tail)
    assert await told.check(admins.tell) is Level.FULL_SOON
    assert admins.kinds == ["filling"]


async def test_admins_are_told_once_for_a_crossing(memory: Memory, keeper: CapacityMonitor) -> None:
    admins = Admins()
    for share, level in ((0.5, Level.NORMAL), (0.83, Level.FULL_SOON), (0.85, Level.FULL_SOON)):
        await empty(memory)
        await fill(memory, share)
        assert await keeper.check(admins.tell) is level
    assert admins.told == [CapacityAlert("filling", Dropped())]


async def test_admins_are_told_again_after_a_fall_but_not_on_the_same_day(memory: Memory) -> None:
    told, now = AlertLog(memory.store), time()
    filling = [CapacityAlert("filling", Dropped())]
    hours = {0: (Level.FULL_SOON, filling), 1: (Level.NORMAL, []), 2: (Level.FULL_SOON, [])}
    hours |= {3: (Level.NORMAL, []), 30: (Level.FULL_SOON, filling), 31: (Level.FULL_SOON, [])}
    for hour, (level, expected) in hours.items():
        at = now + hour * 3600
        news = await told.due(level, at)
        assert (hour, news) == (hour, expected)
        for each in news:
            await told.mark_reported(each, level, at)


async def test_what_is_dropped_after_admins_were_told_is_told_a_day_later(memory: Memory) -> None:
    told, now = AlertLog(memory.store), time()
    await told.add(Dropped(vectors=5))
    first = CapacityAlert("dropped", Dropped(vectors=5))
    assert await told.due(Level.NORMAL, now) == [first]
    await told.mark_reported(first, Level.NORMAL, now)
    await told.add(Dropped(vectors=1, messages=7))
    assert await told.due(Level.NORMAL, now + DAY_S - 1) == []
    second = CapacityAlert("dropped", Dropped(1, 7))
    assert await told.due(Level.NORMAL, now + DAY_S) == [second]
    assert await told.dropped() == Dropped(6, 7)


async def test_of_several_processes_one_tells(
    small_store: RedisClient, tokens: TokenCounter, memory: Memory
) -> None:
    await fill(memory, 0.83)
    admins = Admins()
    others = [Memory(small_store, 42, tokens, None, OPTIONS) for _ in range(5)]
    for _ in range(2):
        await asyncio.gather(*(each.capacity.check(admins.tell) for each in others))
    assert admins.kinds == ["filling"]


async def test_what_could_not_be_told_is_told_later(
    memory: Memory, keeper: CapacityMonitor
) -> None:
    await fill(memory, 0.83)
    admins = Admins()
    admins.are_away = True
    await keeper.check(admins.tell)
    admins.are_away = False
    await keeper.check(admins.tell)
    await keeper.check(admins.tell)
    assert admins.kinds == ["filling"]


async def test_the_reserve_lets_a_turn_be_finished_when_nothing_more_can_be_written(
    memory: Memory, keeper: CapacityMonitor
) -> None:
    admins = Admins()
    await put(memory, 1)
    await put(memory, 2, Scope.of_chat(8), sender=8)
    await keeper.check(admins.tell)
    assert (keeper.ballast.is_allocated, keeper.ballast.is_released) == (True, False)
    turn = await take(memory)
    await fill_up(memory)
    with pytest.raises(StoreFull):
        await put(memory, 3)
    assert await keeper.check(admins.tell) is Level.FULL
    assert (keeper.ballast.is_released, admins.kinds) == (True, ["full"])
    await close(memory, turn, "done")
    assert await texts(memory) == ["text 1", "done"]
    await close(memory, await take(memory, Scope.of_chat(8)))

    await empty(memory)
    assert await keeper.check(admins.tell) <= Level.NORMAL
    assert (keeper.ballast.is_allocated, keeper.ballast.is_released) == (True, False)


async def test_every_process_sees_that_the_reserve_is_spent(
    memory: Memory, small_store: RedisClient, tokens: TokenCounter
) -> None:
    admins = Admins()
    await memory.capacity.check(admins.tell)
    await fill(memory, 0.95)
    await memory.capacity.ballast.release()
    other = Memory(small_store, 42, tokens, None, OPTIONS).capacity
    assert await other.check(admins.tell) is Level.FULL
    assert other.ballast.is_released


async def test_without_a_reserve_there_is_nothing_to_spend(memory: Memory) -> None:
    await memory.capacity.ballast.release()
    assert not memory.capacity.ballast.is_released


async def test_a_plan_that_was_full_before_we_came_is_made_room_in(
    memory: Memory, old_days: OldDays, keeper: CapacityMonitor
) -> None:
    since = time() - DAY_S
    await old_days.talk(ANN, 1000, since=since, until=since + 100, fingerprint="words:512")
    await fill_up(memory)
    admins = Admins()
    assert await keeper.check(admins.tell) < Level.FULL
    assert admins.kinds == ["filling", "dropped"]
    assert keeper.ballast.is_allocated
