"""The outbound budget holds whatever is asked of it; typing never takes an answer's place."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.telegram.errors import FloodWait
from bot.telegram.rate_limit import OutboundBudget
from memory.limits.send_rate import LONGEST_WAIT_S
from memory.store.client import RedisClient
from memory.store.errors import StoreUnavailable
from tests.bot.telegram.pacing import paces_of
from tests.lab.simulator.direct import DirectClient
from tests.valkey import ValkeyServer

ANNA, BEN, GROUP = 7, 8, -7


@dataclass
class Speaker:
    """Somebody who waits as told, on a clock that only moves so."""

    per_second: int = 1000
    now: float = 50.0
    sent_at: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = DirectClient(lambda: self.now)
        self.budget = self.another_budget()

    def another_budget(self) -> OutboundBudget:
        """Return that of another worker."""
        return OutboundBudget(self.per_second, paces_of(self.store), lambda: self.now)

    async def send(self, chat_id: int = ANNA) -> None:
        async for wait_s in self.budget.waits(chat_id):
            self.now += wait_s
        self.sent_at.append(round(self.now, 6))

    async def waits(self, chat_id: int = ANNA) -> list[float]:
        return [wait_s async for wait_s in self.budget.waits(chat_id)]


def max_within(moments: list[float], window_s: float) -> int:
    return max(sum(at <= other < at + window_s for other in moments) for at in moments)


async def test_a_private_chat_gets_three_at_once_then_one_a_second() -> None:
    speaker = Speaker()
    for _ in range(6):
        await speaker.send()
    assert speaker.sent_at == [50, 50, 50, 51, 52, 53]


async def test_a_group_never_gets_more_than_twenty_in_any_minute() -> None:
    speaker = Speaker()
    for _ in range(80):
        await speaker.send(GROUP)
    assert max_within(speaker.sent_at, 60) <= 20
    assert max_within(speaker.sent_at, 61) == 20


async def test_one_chats_messages_do_not_delay_anothers() -> None:
    speaker = Speaker()
    for _ in range(3):
        await speaker.budget.take(ANNA)
    assert await speaker.waits(BEN) == []
    assert await speaker.waits(ANNA) == [1]


@settings(max_examples=20)
@given(st.integers(1, 200), st.integers(1, 400))
async def test_all_chats_together_keep_to_the_rate(per_second: int, chats: int) -> None:
    speaker = Speaker(per_second)
    for chat_id in range(1, chats + 1):
        await speaker.send(chat_id)
    assert max_within(speaker.sent_at, 0.999) <= per_second + 1


async def test_thirty_a_second_are_what_the_default_allows() -> None:
    speaker = Speaker(30)
    for chat_id in range(1, 200):
        await speaker.send(chat_id)
    assert max_within(speaker.sent_at, 0.999) == 30


@settings(max_examples=20)
@given(st.integers(1, 60), st.integers(1, 12))
async def test_workers_together_keep_to_the_rate(per_second: int, workers: int) -> None:
    speakers = [Speaker(per_second) for _ in range(workers)]
    for speaker in speakers:
        speaker.budget.share(workers)
        for chat_id in range(1, 1 + 120 // workers):
            await speaker.send(chat_id)
    together = [moment for speaker in speakers for moment in speaker.sent_at]
    assert max_within(together, 0.999) <= per_second + workers


async def test_what_is_taken_stays_taken_when_workers_come_and_go() -> None:
    speaker = Speaker(12)
    for chat_id in range(1, 60):
        await speaker.send(chat_id)
    speaker.budget.share(4)
    speaker.budget.share(1)
    assert (await speaker.waits(BEN))[0] > 0


async def test_typing_is_left_out_while_an_answer_could_want_its_place() -> None:
    speaker = Speaker()
    assert [await speaker.budget.take_spare(ANNA) for _ in range(4)] == [True, True, False, False]
    assert await speaker.waits(ANNA) == []


@pytest.mark.parametrize(
    ("workers", "expected"), [(1, 5), (5, 1), (6, 1), (10, 1), (30, 1), (31, 0)]
)
async def test_an_idle_worker_shows_typing_unless_an_answer_would_wait_long(
    workers: int, expected: int
) -> None:
    """One of more than five has a single place of thirty a second."""
    speaker = Speaker(30)
    speaker.budget.share(workers)
    shown = [await speaker.budget.take_spare(chat_id) for chat_id in range(1, 9)]
    assert shown == [True] * expected + [False] * (8 - expected)
    await speaker.send()
    assert speaker.now - 50 <= 1


@settings(max_examples=20)
@given(st.lists(st.tuples(st.booleans(), st.floats(0, 3)), max_size=60))
async def test_however_much_typing_there_is_an_answer_waits_for_answers_only(
    calls: list[tuple[bool, float]],
) -> None:
    """It waits no longer than it would have without any typing, but for a place's second."""
    with_typing, without = Speaker(), Speaker()
    for is_answer, pause_s in calls:
        with_typing.now += pause_s
        without.now = max(without.now, with_typing.now)
        if is_answer:
            await with_typing.send()
            await without.send()
            assert with_typing.now - without.now <= 2
        else:
            await with_typing.budget.take_spare(ANNA)


async def test_a_ban_shuts_its_chat_and_no_other() -> None:
    speaker = Speaker()
    await speaker.budget.shut(ANNA, for_s=7)
    assert await speaker.waits(BEN) == []
    assert await speaker.budget.take_spare(ANNA) is False
    await speaker.send()
    await speaker.send()
    assert speaker.sent_at == [57, 58]


async def test_a_place_given_away_before_a_ban_is_not_used_within_it() -> None:
    """Topics of one group are answered side by side; a ban strikes all of them."""
    speaker = Speaker()
    for _ in range(5):
        await speaker.send(GROUP)
    waits = speaker.budget.waits(GROUP)
    assert await anext(waits) == 4
    speaker.now += 3
    await speaker.budget.shut(GROUP, for_s=7)
    speaker.now += 1
    assert await anext(waits) == 6
    speaker.now += 6
    assert [wait_s async for wait_s in waits] == []
    await speaker.send(GROUP)
    assert speaker.sent_at[-1] == 64


async def test_a_wait_too_long_for_a_lease_is_a_flood_wait_and_takes_no_place() -> None:
    speaker = Speaker()
    await speaker.budget.shut(ANNA, for_s=LONGEST_WAIT_S + 1)
    for _ in range(2):
        with pytest.raises(FloodWait) as caught:
            await speaker.waits(ANNA)
        assert caught.value.retry_after_s == LONGEST_WAIT_S + 1


async def test_no_rate_is_no_budget() -> None:
    speaker = Speaker(0)
    await speaker.budget.shut(ANNA, for_s=100)
    for _ in range(100):
        assert await speaker.budget.take_spare(ANNA) is True
        await speaker.send()
    assert speaker.now == 50


async def test_what_several_workers_tell_one_group_is_counted_together() -> None:
    speaker = Speaker()
    budgets = [speaker.another_budget() for _ in range(3)]
    for number in range(60):
        async for wait_s in budgets[number % 3].waits(GROUP):
            speaker.now += wait_s
        speaker.sent_at.append(speaker.now)
    assert max_within(speaker.sent_at, 60) <= 20


async def test_a_ban_that_one_worker_met_holds_all_back() -> None:
    speaker = Speaker()
    other = speaker.another_budget()
    await speaker.budget.shut(ANNA, for_s=7)
    assert await other.take_spare(ANNA) is False
    with pytest.raises(FloodWait) as ban:
        await other.take_unless_shut(ANNA)
    assert ban.value.retry_after_s == 7
    assert [wait_s async for wait_s in other.waits(BEN)] == []
    assert await anext(other.waits(ANNA)) == 7


async def test_without_redis_typing_is_left_out_edits_go_and_an_answer_is_not_sent_blindly(
    tmp_path: Path,
) -> None:
    server = ValkeyServer(tmp_path)
    server.start()
    client = await RedisClient.open(server.url)
    server.stop()
    budget = OutboundBudget(1000, paces_of(client))
    assert await budget.take_spare(ANNA) is False
    await budget.take_unless_shut(ANNA)
    await budget.take(ANNA)
    await budget.shut(ANNA, 7)
    with pytest.raises(StoreUnavailable):
        await anext(budget.waits(ANNA))
    await client.close()
