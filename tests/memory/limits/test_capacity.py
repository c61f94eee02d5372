"""Alerts for admins, and the ballast that is freed when Redis refuses writes."""

import asyncio
from time import time

import pytest

from memory.limits.capacity import CapacityAlert, CapacityMonitor, FillLevel, Level
from memory.memory import Memory
from memory.store.client import RedisClient
from memory.store.errors import StoreFull
from memory.store.keys import Scope
from tests.memory.conftest import memory_of
from tests.memory.limits.conftest import REDIS_BYTES, fill, fill_up
from tests.memory.turns import close, put, take, texts
from tests.valkey import ValkeyServer


class Admins:
    """While `are_away` is set, no admin can be reached."""

    def __init__(self) -> None:
        self.told: list[CapacityAlert] = []
        self.are_away = False

    async def tell(self, news: CapacityAlert, filling: FillLevel) -> bool:
        assert filling.limit
        if not self.are_away:
            self.told.append(news)
        return not self.are_away


async def empty(memory: Memory) -> None:
    await memory.client.call("DEL", "ballast")


async def test_without_a_limit_nothing_is_done(small_server: ValkeyServer, memory: Memory) -> None:
    await fill(memory, 0.95)
    small_server.ask("CONFIG SET maxmemory 0")
    admins = Admins()
    assert await memory.capacity.check(admins.tell) is Level.NORMAL
    assert (admins.told, await memory.client.call("DBSIZE")) == ([], 1)
    told = CapacityMonitor(memory.store, REDIS_BYTES)
    assert await told.check(admins.tell) is Level.FULL_SOON
    assert admins.told == ["filling"]


async def test_admins_are_told_of_a_crossing_once(memory: Memory) -> None:
    admins = Admins()
    for share, level in ((0.5, Level.NORMAL), (0.83, Level.FULL_SOON), (0.85, Level.FULL_SOON)):
        await empty(memory)
        await fill(memory, share)
        assert await memory.capacity.check(admins.tell) is level
    assert admins.told == ["filling"]


async def test_admins_are_told_again_after_a_fall_but_not_on_the_same_day(memory: Memory) -> None:
    monitor, now = memory.capacity, time()
    hours = {0: (Level.FULL_SOON, "filling"), 1: (Level.NORMAL, None), 2: (Level.FULL_SOON, None)}
    hours |= {3: (Level.NORMAL, None), 30: (Level.FULL_SOON, "filling")}
    hours |= {31: (Level.FULL_SOON, None)}
    for hour, (level, expected) in hours.items():
        at = now + hour * 3600
        news = await monitor.due_alert(level, at)
        assert (hour, news) == (hour, expected)
        if news:
            await monitor._note({f"reported:{news}": int(at), "level": int(level)})


async def test_one_of_several_processes_sends_the_alert(store: RedisClient, memory: Memory) -> None:
    await fill(memory, 0.83)
    admins = Admins()
    others = [memory_of(store) for _ in range(5)]
    for _ in range(2):
        await asyncio.gather(*(each.capacity.check(admins.tell) for each in others))
    assert admins.told == ["filling"]


async def test_an_alert_that_reached_no_admin_is_sent_later(memory: Memory) -> None:
    await fill(memory, 0.83)
    admins = Admins()
    for admins.are_away in (True, False, False):
        await memory.capacity.check(admins.tell)
    assert admins.told == ["filling"]


async def test_the_ballast_lets_a_turn_finish_when_redis_is_full(memory: Memory) -> None:
    monitor, admins = memory.capacity, Admins()
    await put(memory, 4, Scope.of_chat(9), sender=9)
    await close(memory, await take(memory, Scope.of_chat(9)))  # scripts take memory when they load
    await put(memory, 1)
    await put(memory, 2, Scope.of_chat(8), sender=8)
    await monitor.check(admins.tell)
    assert (monitor.ballast.is_allocated, monitor.ballast.is_released) == (True, False)
    turn = await take(memory)
    await fill_up(memory)
    with pytest.raises(StoreFull):
        await put(memory, 3)
    assert await monitor.check(admins.tell) is Level.FULL
    assert (monitor.ballast.is_released, admins.told) == (True, ["full"])
    await close(memory, turn, "done")
    assert await texts(memory) == ["text 1", "done"]
    await close(memory, await take(memory, Scope.of_chat(8)))

    await empty(memory)
    assert await monitor.check(admins.tell) <= Level.NORMAL
    assert (monitor.ballast.is_allocated, monitor.ballast.is_released) == (True, False)


async def test_every_process_sees_that_the_ballast_is_released(
    memory: Memory, other: Memory
) -> None:
    admins = Admins()
    await memory.capacity.check(admins.tell)
    await fill(memory, 0.95)
    await memory.capacity.ballast.release()
    assert await other.capacity.check(admins.tell) is Level.FULL
    assert other.capacity.ballast.is_released


async def test_without_ballast_there_is_nothing_to_release(memory: Memory) -> None:
    await memory.capacity.ballast.release()
    assert not memory.capacity.ballast.is_released
