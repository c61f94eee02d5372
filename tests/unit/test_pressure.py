"""How much waits is looked at now and then, not for every update."""

from bot.pressure import Pressure
from memory.keys import Keys
from memory.redis_client import RedisClient

KEYS = Keys(42)


async def ring(store: RedisClient, times: int) -> None:
    for _ in range(times):
        await store.call("XADD", KEYS.doorbell, "*", "c", "c:7:0")


async def test_pressure_is_high_beyond_the_bound_and_falls_again(store: RedisClient) -> None:
    clock = [100.0]
    pressure = Pressure(store, KEYS, most_bells=2, now=lambda: clock[0])
    await ring(store, 2)
    assert await pressure.is_high() is False
    await ring(store, 1)
    assert await pressure.is_high() is False
    clock[0] += 1
    assert await pressure.is_high() is True
    await store.call("DEL", KEYS.doorbell)
    clock[0] += 1
    assert await pressure.is_high() is False


async def test_one_look_serves_a_second(store: RedisClient) -> None:
    pressure = Pressure(store, KEYS, most_bells=2, now=lambda: 100.0)
    trips = store.round_trips
    for _ in range(50):
        await pressure.is_high()
    assert store.round_trips - trips == 1


async def test_without_a_bound_nobody_looks(store: RedisClient) -> None:
    await ring(store, 3)
    trips = store.round_trips
    assert await Pressure(store, KEYS, most_bells=0).is_high() is False
    assert store.round_trips == trips
