"""No sequence of calls exceeds the rate limit, and typing never delays an answer."""

from dataclasses import dataclass, field

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.telegram.errors import FloodWait
from bot.telegram.rate_limit import MAX_WAIT_S, SendRateLimiter, SendRates, share_with_workers
from memory.queue.mailbox import Mailbox
from memory.queue.ready_queue import ReadyQueue
from memory.store.client import RedisClient
from memory.store.errors import StoreUnavailable
from memory.store.keys import Scope
from memory.store.store import Scripts, Store
from tests.bot.telegram.doubles import KEYS, send_rates_on
from tests.lab.simulator.client import DirectClient
from tests.memory.clients import full_redis
from tests.valkey import ValkeyServer

ANNA, BEN, GROUP = 7, 8, -7


@dataclass
class Speaker:
    """Sends as soon as the limiter allows, on a clock that only its waits move."""

    per_second: int = 1000
    now: float = 50.0
    sent_at: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = DirectClient(lambda: self.now)
        self.limiter = self.another_limiter()

    def another_limiter(self) -> SendRateLimiter:
        return SendRateLimiter(self.per_second, send_rates_on(self.store), lambda: self.now)

    async def send(self, chat_id: int = ANNA, limiter: SendRateLimiter | None = None) -> None:
        async for wait_s in (limiter or self.limiter).waits(chat_id):
            self.now += wait_s
        self.sent_at.append(round(self.now, 6))

    async def waits(self, chat_id: int = ANNA) -> list[float]:
        return [wait_s async for wait_s in self.limiter.waits(chat_id)]


def max_within(moments: list[float], window_s: float) -> int:
    return max(sum(at <= other < at + window_s for other in moments) for at in moments)


async def test_a_private_chat_gets_three_at_once_then_one_a_second() -> None:
    speaker = Speaker()
    for _ in range(6):
        await speaker.send()
    assert speaker.sent_at == [50, 50, 50, 51, 52, 53]


@pytest.mark.parametrize("workers", [1, 3])
async def test_a_group_never_gets_more_than_twenty_in_any_minute(workers: int) -> None:
    speaker = Speaker()
    limiters = [speaker.another_limiter() for _ in range(workers)]
    for number in range(80):
        await speaker.send(GROUP, limiters[number % workers])
    assert max_within(speaker.sent_at, 60) <= 20
    assert max_within(speaker.sent_at, 61) == 20


@settings(max_examples=20)
@example(30, 200)
@given(st.integers(1, 200), st.integers(1, 400))
async def test_all_chats_together_keep_the_rate(per_second: int, chats: int) -> None:
    speaker = Speaker(per_second)
    for chat_id in range(1, chats + 1):
        await speaker.send(chat_id)
    assert min(per_second, chats) <= max_within(speaker.sent_at, 0.999) <= per_second + 1


@settings(max_examples=20)
@given(st.integers(1, 60), st.integers(1, 12))
async def test_all_workers_together_keep_the_rate(per_second: int, workers: int) -> None:
    speakers = [Speaker(per_second) for _ in range(workers)]
    for speaker in speakers:
        speaker.limiter.share(workers)
        for chat_id in range(1, 1 + 120 // workers):
            await speaker.send(chat_id)
    together = [moment for speaker in speakers for moment in speaker.sent_at]
    assert max_within(together, 0.999) <= per_second + workers


async def test_taken_permits_stay_taken_when_the_number_of_workers_changes() -> None:
    speaker = Speaker(12)
    for chat_id in range(1, 60):
        await speaker.send(chat_id)
    speaker.limiter.share(4)
    speaker.limiter.share(1)
    assert (await speaker.waits(BEN))[0] > 0


async def test_typing_is_left_out_while_an_answer_could_need_the_permit() -> None:
    speaker = Speaker()
    assert [await speaker.limiter.take_spare(ANNA) for _ in range(4)] == [True, True, False, False]
    assert await speaker.waits(ANNA) == []


@pytest.mark.parametrize(
    ("workers", "expected"), [(1, 5), (5, 1), (6, 1), (10, 1), (30, 1), (31, 0)]
)
async def test_an_idle_worker_shows_typing_unless_an_answer_would_wait_long(
    workers: int, expected: int
) -> None:
    """With more than five workers, each has a single permit of thirty a second."""
    speaker = Speaker(30)
    speaker.limiter.share(workers)
    shown = [await speaker.limiter.take_spare(chat_id) for chat_id in range(1, 9)]
    assert shown == [True] * expected + [False] * (8 - expected)
    await speaker.send()
    assert speaker.now - 50 <= 1


@settings(max_examples=20)
@given(st.lists(st.tuples(st.booleans(), st.floats(0, 3)), max_size=60))
async def test_an_answer_waits_for_answers_not_for_typing(calls: list[tuple[bool, float]]) -> None:
    """With typing an answer waits at most the second of one permit longer than without."""
    with_typing, without = Speaker(), Speaker()
    for is_answer, pause_s in calls:
        with_typing.now += pause_s
        without.now = max(without.now, with_typing.now)
        if is_answer:
            await with_typing.send()
            await without.send()
            assert with_typing.now - without.now <= 2
        else:
            await with_typing.limiter.take_spare(ANNA)


async def test_a_ban_closes_its_chat_and_no_other() -> None:
    speaker = Speaker()
    await speaker.limiter.close(ANNA, for_s=7)
    assert await speaker.waits(BEN) == []
    assert await speaker.limiter.take_spare(ANNA) is False
    await speaker.send()
    await speaker.send()
    assert speaker.sent_at == [57, 58]


async def test_a_permit_taken_before_a_ban_is_not_used_during_it() -> None:
    """Topics of one group are answered in parallel, and a ban closes all of them."""
    speaker = Speaker()
    for _ in range(5):
        await speaker.send(GROUP)
    waits = speaker.limiter.waits(GROUP)
    assert await anext(waits) == 4
    speaker.now += 3
    await speaker.limiter.close(GROUP, for_s=7)
    speaker.now += 1
    assert await anext(waits) == 6
    speaker.now += 6
    assert [wait_s async for wait_s in waits] == []
    await speaker.send(GROUP)
    assert speaker.sent_at[-1] == 64


async def test_a_wait_too_long_for_a_lease_is_a_flood_wait_and_takes_no_permit() -> None:
    speaker = Speaker()
    await speaker.limiter.close(ANNA, for_s=MAX_WAIT_S + 1)
    for _ in range(2):
        with pytest.raises(FloodWait) as caught:
            await speaker.waits(ANNA)
        assert caught.value.retry_after_s == MAX_WAIT_S + 1
    for _ in range(5):
        await speaker.send(GROUP)
    for _ in range(2):
        with pytest.raises(FloodWait) as caught:
            await anext(speaker.limiter.waits(GROUP, max_wait_s=2))
        assert caught.value.retry_after_s == 4


async def test_rate_zero_means_no_limit() -> None:
    speaker = Speaker(0)
    await speaker.limiter.close(ANNA, for_s=100)
    for _ in range(100):
        assert await speaker.limiter.take_spare(ANNA) is True
        await speaker.send()
    assert speaker.now == 50


async def test_a_ban_that_one_worker_meets_stops_all_workers() -> None:
    speaker = Speaker()
    other = speaker.another_limiter()
    await speaker.limiter.close(ANNA, for_s=7)
    assert await other.take_spare(ANNA) is False
    with pytest.raises(FloodWait) as ban:
        await other.take_unless_closed(ANNA)
    assert ban.value.retry_after_s == 7
    assert [wait_s async for wait_s in other.waits(BEN)] == []
    assert await anext(other.waits(ANNA)) == 7


async def test_without_redis_only_edits_are_made(own_server: ValkeyServer) -> None:
    client = await RedisClient.open(own_server.url)
    own_server.stop()
    limiter = SendRateLimiter(1000, send_rates_on(client))
    assert await limiter.take_spare(ANNA) is False
    await limiter.take_unless_closed(ANNA)
    await limiter.close(ANNA, 7)
    with pytest.raises(StoreUnavailable):
        await anext(limiter.waits(ANNA))
    await client.close()


async def chats_without_wait(limiter: SendRateLimiter) -> int:
    """Return how many chats can be written to before a message has to wait."""
    for n, chat_id in enumerate(range(1, 100)):
        async for _ in limiter.waits(chat_id):
            return n
    return 100


@pytest.mark.parametrize(("workers", "expected"), [(0, 6), (1, 6), (2, 3), (5, 2)])
async def test_the_rate_is_shared_equally_by_the_workers_that_read_the_ready_queue(
    store: RedisClient, workers: int, expected: int
) -> None:
    scripts = Scripts(store)
    ready_queues = [ReadyQueue(store, scripts, KEYS.ready_queue) for _ in range(workers)]
    if ready_queues:
        await ready_queues[0].read(1, 1)  # creates the group
    mailbox = Mailbox(Store(store, KEYS, scripts, ttl_s=3600))
    for chat_id, ready_queue in enumerate(ready_queues):
        await mailbox.wake(Scope.of_chat(chat_id))
        await ready_queue.read(1, 100)
    limiter = SendRateLimiter(30, send_rates_on(store), lambda: 50.0)
    await share_with_workers(limiter, ReadyQueue(store, scripts, KEYS.ready_queue), lease_s=30)
    assert await chats_without_wait(limiter) == expected


async def test_without_a_rate_limit_workers_are_not_counted(store: RedisClient) -> None:
    limiter = SendRateLimiter(0, send_rates_on(store))
    trips = store.round_trips
    ready_queue = ReadyQueue(store, Scripts(store), KEYS.ready_queue)
    await share_with_workers(limiter, ready_queue, lease_s=30)
    assert store.round_trips == trips


OTHER_GROUP = -8
KEY = KEYS.send_rate(GROUP)


async def waits(send_rates: SendRates, calls: int, chat_id: int = GROUP) -> list[int]:
    """Take so many permits and return the wait of each, in steps."""
    return [steps((await send_rates.take(chat_id)).wait_s) for _ in range(calls)]


def steps(seconds: float) -> int:
    """In a group a step has four seconds: a pause of the machine changes none by half."""
    return round(seconds / 4)


async def test_a_real_server_gives_the_same_permits_as_a_simulated_one(store: RedisClient) -> None:
    simulated = DirectClient(lambda: 1_000.0)
    for send_rates in (send_rates_on(store), send_rates_on(simulated)):
        assert await waits(send_rates, 7) == [0, 0, 0, 0, 0, 1, 2]
        assert await send_rates.take_spare(GROUP) is False
        assert steps((await send_rates.take(GROUP, None)).wait_s) == 3
        await send_rates.ban(OTHER_GROUP, 8)
        assert steps(await send_rates.ban_s(OTHER_GROUP)) == 2
        await send_rates.ban(OTHER_GROUP, 4)
        assert steps(await send_rates.ban_s(OTHER_GROUP)) == 2
        assert (await send_rates.take(OTHER_GROUP, None)).is_taken is False
        assert await waits(send_rates, 3, OTHER_GROUP) == [2, 3, 4]
        assert await waits(send_rates, 1, -9) == [0]


async def test_the_key_of_a_quiet_chat_expires(store: RedisClient) -> None:
    send_rates = send_rates_on(store)
    await waits(send_rates, 2)
    assert 4_000 < await store.call("PTTL", KEY) <= 8_000
    assert await store.call("GET", KEY) == b""
    await send_rates.ban(GROUP, 60)
    assert 72_000 < await store.call("PTTL", KEY) <= 76_000
    assert await store.call("DBSIZE") == 1


@pytest.mark.parametrize("back_s", [60, 3_600])
async def test_after_the_clock_went_back_no_permit_waits_until_it_caught_up(back_s: float) -> None:
    now = 10_000.0
    send_rates = send_rates_on(DirectClient(lambda: now))
    await waits(send_rates, 10)
    await send_rates.ban(OTHER_GROUP, 15)
    now -= back_s
    for chat_id in (GROUP, OTHER_GROUP):
        permit = await send_rates.take(chat_id)
        assert permit.is_taken, chat_id
        assert permit.ban_s == 0


async def test_a_full_redis_still_counts_permits(store: RedisClient) -> None:
    send_rates = send_rates_on(store)
    await waits(send_rates, 4)
    async with full_redis(store):
        assert await waits(send_rates, 2) == [0, 1]
        assert await waits(send_rates, 6, OTHER_GROUP) == [0, 0, 0, 0, 0, 1]
        for chat_id in (GROUP, -9):
            await send_rates.ban(chat_id, 40)
            assert steps(await send_rates.ban_s(chat_id)) == 10
