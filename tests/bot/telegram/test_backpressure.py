"""The number of waiting conversations is checked once a second, not for every update."""

from bot.telegram.intake import Backpressure
from memory.store.client import RedisClient
from memory.store.keys import Keys

KEYS = Keys(42)


async def wake(store: RedisClient, times: int) -> None:
    for _ in range(times):
        await store.call("XADD", KEYS.ready_queue, "*", "c", "c:7:0")


async def test_backpressure_is_high_beyond_the_bound_and_ends_when_it_falls(
    store: RedisClient,
) -> None:
    clock = [100.0]
    backpressure = Backpressure(store, KEYS, max_pending=2, now=lambda: clock[0])
    await wake(store, 2)
    assert await backpressure.is_high() is False
    await wake(store, 1)
    assert await backpressure.is_high() is False
    clock[0] += 1
    assert await backpressure.is_high() is True
    await store.call("DEL", KEYS.ready_queue)
    clock[0] += 1
    assert await backpressure.is_high() is False


async def test_one_check_serves_a_second(store: RedisClient) -> None:
    backpressure = Backpressure(store, KEYS, max_pending=2, now=lambda: 100.0)
    trips = store.round_trips
    for _ in range(50):
        await backpressure.is_high()
    assert store.round_trips - trips == 1


async def test_without_a_bound_nothing_is_checked(store: RedisClient) -> None:
    await wake(store, 3)
    trips = store.round_trips
    assert await Backpressure(store, KEYS, max_pending=0).is_high() is False
    assert store.round_trips == trips
