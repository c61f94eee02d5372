"""How full Redis is, and the ballast that is freed when Redis refuses writes."""

import pytest

from memory.limits.capacity import CapacityMonitor, Level
from memory.memory import Memory
from memory.store.errors import StoreFull
from memory.store.keys import Scope
from tests.memory.limits.conftest import REDIS_BYTES, fill, fill_up
from tests.memory.turns import close, put, take, texts
from tests.valkey import ValkeyServer


async def level_of(monitor: CapacityMonitor) -> Level:
    await monitor.check()
    return monitor.level


async def empty(memory: Memory) -> None:
    await memory.client.call("DEL", "ballast")


async def test_without_a_limit_nothing_is_done(small_server: ValkeyServer, memory: Memory) -> None:
    await fill(memory, 0.95)
    small_server.ask("CONFIG SET maxmemory 0")
    assert await level_of(memory.capacity) is Level.NORMAL
    assert await memory.client.call("DBSIZE") == 1
    assert await level_of(CapacityMonitor(memory.store, REDIS_BYTES)) is Level.FULL_SOON


async def test_the_ballast_lets_a_turn_finish_when_redis_is_full(memory: Memory) -> None:
    monitor = memory.capacity
    await put(memory, 4, Scope.of_chat(9), sender=9)
    await close(memory, await take(memory, Scope.of_chat(9)))  # scripts take memory when they load
    await put(memory, 1)
    await put(memory, 2, Scope.of_chat(8), sender=8)
    await monitor.check()
    assert (monitor.ballast.is_allocated, monitor.ballast.is_released) == (True, False)
    turn = await take(memory)
    await fill_up(memory)
    with pytest.raises(StoreFull):
        await put(memory, 3)
    assert await level_of(monitor) is Level.FULL
    assert monitor.ballast.is_released
    await close(memory, turn, "done")
    assert await texts(memory) == ["text 1", "done"]
    await close(memory, await take(memory, Scope.of_chat(8)))

    await empty(memory)
    assert await level_of(monitor) <= Level.NORMAL
    assert (monitor.ballast.is_allocated, monitor.ballast.is_released) == (True, False)


async def test_every_process_sees_that_the_ballast_is_released(
    memory: Memory, other: Memory
) -> None:
    await memory.capacity.check()
    await fill(memory, 0.95)
    await memory.capacity.ballast.release()
    assert await level_of(other.capacity) is Level.FULL
    assert other.capacity.ballast.is_released


async def test_without_ballast_there_is_nothing_to_release(memory: Memory) -> None:
    await memory.capacity.ballast.release()
    assert not memory.capacity.ballast.is_released
