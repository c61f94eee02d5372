"""How much waits is looked at now and then, not for every update."""

from bot.telegram.intake import Backpressure
from memory.store.client import RedisClient
from memory.store.keys import Keys

KEYS = Keys(42)


async def wake(store: RedisClient, times: int) -> None:
    for _ in range(times):
        await store.call("XADD", KEYS.ready_queue, "*", "c", "c:7:0")


async def test_pressure_is_high_beyond_the_bound_and_falls_again(store: RedisClient) -> None:
    clock = [100.0]
    pressure = Backpressure(store, KEYS, max_pending=2, now=lambda: clock[0])
    await wake(store, 2)
    assert await pressure.is_high() is False
    await wake(store, 1)
    assert await pressure.is_high() is False
    clock[0] += 1
    assert await pressure.is_high() is True
    await store.call("DEL", KEYS.ready_queue)
    clock[0] += 1
    assert await pressure.is_high() is False


async def test_one_look_serves_a_second(store: RedisClient) -> None:
    pressure = Backpressure(store, KEYS, max_pending=2, now=lambda: 100.0)
    trips = store.round_trips
    for _ in range(50):
        await pressure.is_high()
    assert store.round_trips - trips == 1


async def test_without_a_bound_nobody_looks(store: RedisClient) -> None:
    await wake(store, 3)
    trips = store.round_trips
    assert await Backpressure(store, KEYS, max_pending=0).is_high() is False
    assert store.round_trips == trips
