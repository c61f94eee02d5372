"""Send rates on a real server, with its key, and when its clock jumps."""

import pytest

from memory.limits.quotas import MAX_WAIT_S, Rate, SendRates
from memory.store.client import RedisClient
from tests.bot.telegram.doubles import KEYS, send_rates_on
from tests.lab.simulator.direct import DirectClient

ANNA, BEN = 7, 8
RATE = Rate(at_once=3, every_s=4)
"""Steps of four seconds: a pause of the machine between two calls changes none by half."""
KEY = KEYS.send_rate(ANNA)


async def waits(send_rates: SendRates, calls: int, chat_id: int = ANNA) -> list[int]:
    """Take so many permits and return the wait of each, in steps."""
    return [steps((await send_rates.take(chat_id, RATE)).wait_s) for _ in range(calls)]


def steps(seconds: float) -> int:
    return round(seconds / RATE.every_s)


async def test_a_real_server_gives_the_same_permits_as_a_simulated_one(store: RedisClient) -> None:
    simulated = DirectClient(lambda: 1_000.0)
    for send_rates in (send_rates_on(store), send_rates_on(simulated)):
        assert await waits(send_rates, 5) == [0, 0, 0, 1, 2]
        assert await send_rates.take_spare(ANNA, RATE) is False
        assert steps((await send_rates.take(ANNA, RATE, None)).wait_s) == 3
        await send_rates.ban(BEN, RATE, 8)
        assert steps(await send_rates.ban_s(BEN, RATE)) == 2
        await send_rates.ban(BEN, RATE, 4)
        assert steps(await send_rates.ban_s(BEN, RATE)) == 2
        assert (await send_rates.take(BEN, RATE, None)).is_taken is False
        assert await waits(send_rates, 3, BEN) == [2, 3, 4]
        assert await waits(send_rates, 1, 9) == [0]


async def test_a_permit_that_comes_too_late_is_not_taken(store: RedisClient) -> None:
    send_rates = send_rates_on(store)
    await send_rates.ban(ANNA, RATE, 2 * MAX_WAIT_S)
    for _ in range(2):
        permit = await send_rates.take(ANNA, RATE)
        assert (permit.is_taken, steps(permit.wait_s)) == (False, 10)


async def test_the_key_of_a_quiet_chat_expires(store: RedisClient) -> None:
    send_rates = send_rates_on(store)
    await waits(send_rates, 2)
    assert 4_000 < await store.call("PTTL", KEY) <= 8_000
    assert await store.call("GET", KEY) == b""
    await send_rates.ban(ANNA, RATE, 60)
    assert 64_000 < await store.call("PTTL", KEY) <= 68_000
    assert await store.call("DBSIZE") == 1


@pytest.mark.parametrize("back_s", [60, 3_600])
async def test_after_the_clock_went_back_no_permit_waits_until_it_has_caught_up(
    back_s: float,
) -> None:
    now = 10_000.0
    send_rates = send_rates_on(DirectClient(lambda: now))
    await waits(send_rates, 8)
    await send_rates.ban(BEN, RATE, 15)
    now -= back_s
    for chat_id in (ANNA, BEN):
        permit = await send_rates.take(chat_id, RATE)
        assert permit.is_taken, chat_id
        assert permit.ban_s == 0


async def test_a_full_redis_still_counts_permits(store: RedisClient) -> None:
    send_rates = send_rates_on(store)
    await waits(send_rates, 2)
    await store.call("CONFIG SET", "maxmemory", 1)
    try:
        assert await waits(send_rates, 2) == [0, 1]
        assert await waits(send_rates, 4, BEN) == [0, 0, 0, 1]
        for chat_id in (ANNA, 9):
            await send_rates.ban(chat_id, RATE, 40)
            assert steps(await send_rates.ban_s(chat_id, RATE)) == 10
    finally:
        await store.call("CONFIG SET", "maxmemory", 0)
