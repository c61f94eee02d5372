"""The outbound budget holds whatever is asked of it; typing never takes an answer's place."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.telegram.errors import FloodWait
from bot.telegram.pacing import LONGEST_WAIT_S, OutboundBudget

ANNA, BEN, GROUP = 7, 8, -7


@dataclass
class Speaker:
    """Somebody who waits as told, on a clock that only moves so."""

    per_second: int = 1000
    now: float = 50.0
    sent_at: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.budget = OutboundBudget(self.per_second, lambda: self.now)

    def send(self, chat_id: int = ANNA) -> None:
        for wait_s in self.budget.waits(chat_id):
            self.now += wait_s
        self.sent_at.append(round(self.now, 6))


def most_within(moments: list[float], window_s: float) -> int:
    return max(sum(at <= other < at + window_s for other in moments) for at in moments)


def test_a_private_chat_gets_three_at_once_then_one_a_second() -> None:
    speaker = Speaker()
    for _ in range(6):
        speaker.send()
    assert speaker.sent_at == [50, 50, 50, 51, 52, 53]


def test_a_group_never_gets_more_than_twenty_in_any_minute() -> None:
    speaker = Speaker()
    for _ in range(80):
        speaker.send(GROUP)
    assert most_within(speaker.sent_at, 60) <= 20
    assert most_within(speaker.sent_at, 61) == 20


def test_one_chats_messages_do_not_delay_anothers() -> None:
    speaker = Speaker()
    for _ in range(3):
        speaker.budget.take(ANNA)
    assert list(speaker.budget.waits(BEN)) == []
    assert list(speaker.budget.waits(ANNA)) == [1]


@given(st.integers(1, 200), st.integers(1, 400))
def test_all_chats_together_keep_to_the_rate(per_second: int, chats: int) -> None:
    speaker = Speaker(per_second)
    for chat_id in range(1, chats + 1):
        speaker.send(chat_id)
    assert most_within(speaker.sent_at, 0.999) <= per_second + 1


def test_thirty_a_second_are_what_the_default_allows() -> None:
    speaker = Speaker(30)
    for chat_id in range(1, 200):
        speaker.send(chat_id)
    assert most_within(speaker.sent_at, 0.999) == 30


@given(st.integers(1, 60), st.integers(1, 12))
def test_workers_together_keep_to_the_rate(per_second: int, workers: int) -> None:
    speakers = [Speaker(per_second) for _ in range(workers)]
    for speaker in speakers:
        speaker.budget.share(workers)
        for chat_id in range(1, 1 + 120 // workers):
            speaker.send(chat_id)
    together = [moment for speaker in speakers for moment in speaker.sent_at]
    assert most_within(together, 0.999) <= per_second + workers


def test_what_is_taken_stays_taken_when_workers_come_and_go() -> None:
    speaker = Speaker(12)
    for chat_id in range(1, 60):
        speaker.send(chat_id)
    speaker.budget.share(4)
    speaker.budget.share(1)
    assert next(iter(speaker.budget.waits(BEN))) > 0


def test_typing_is_left_out_while_an_answer_could_want_its_place() -> None:
    speaker = Speaker()
    assert [speaker.budget.take_spare(ANNA) for _ in range(4)] == [True, True, False, False]
    assert list(speaker.budget.waits(ANNA)) == []


@pytest.mark.parametrize(
    ("workers", "expected"), [(1, 5), (5, 1), (6, 1), (10, 1), (30, 1), (31, 0)]
)
def test_an_idle_worker_shows_typing_unless_an_answer_would_wait_long(
    workers: int, expected: int
) -> None:
    """One of more than five has a single place of thirty a second."""
    speaker = Speaker(30)
    speaker.budget.share(workers)
    shown = [speaker.budget.take_spare(chat_id) for chat_id in range(1, 9)]
    assert shown == [True] * expected + [False] * (8 - expected)
    speaker.send()
    assert speaker.now - 50 <= 1


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 3)), max_size=60))
def test_however_much_typing_there_is_an_answer_waits_for_answers_only(
    calls: list[tuple[bool, float]],
) -> None:
    """It waits no longer than it would have without any typing, but for a place's second."""
    with_typing, without = Speaker(), Speaker()
    for is_answer, pause_s in calls:
        with_typing.now += pause_s
        without.now = max(without.now, with_typing.now)
        if is_answer:
            with_typing.send()
            without.send()
            assert with_typing.now - without.now <= 2
        else:
            with_typing.budget.take_spare(ANNA)


def test_a_ban_shuts_its_chat_and_no_other() -> None:
    speaker = Speaker()
    speaker.budget.shut(ANNA, for_s=7)
    assert list(speaker.budget.waits(BEN)) == []
    assert speaker.budget.take_spare(ANNA) is False
    speaker.send()
    speaker.send()
    assert speaker.sent_at == [57, 58]


def test_a_place_given_away_before_a_ban_is_not_used_within_it() -> None:
    """Topics of one group are answered side by side; a ban strikes all of them."""
    speaker = Speaker()
    for _ in range(5):
        speaker.send(GROUP)
    waits = speaker.budget.waits(GROUP)
    assert next(waits) == 4
    speaker.now += 3
    speaker.budget.shut(GROUP, for_s=7)
    speaker.now += 1
    assert next(waits) == 6
    speaker.now += 6
    assert list(waits) == []
    speaker.send(GROUP)
    assert speaker.sent_at[-1] == 64


def test_a_wait_too_long_for_a_lease_is_a_flood_wait_and_takes_no_place() -> None:
    speaker = Speaker()
    speaker.budget.shut(ANNA, for_s=LONGEST_WAIT_S + 1)
    for _ in range(2):
        with pytest.raises(FloodWait) as caught:
            next(iter(speaker.budget.waits(ANNA)))
        assert caught.value.retry_after_s == LONGEST_WAIT_S + 1


def test_chats_at_rest_are_forgotten() -> None:
    speaker = Speaker()
    for chat_id in range(1, 10_000):
        speaker.now += 1
        speaker.budget.take(chat_id)
    assert len(speaker.budget._chats) <= 1_001


def test_no_rate_is_no_budget() -> None:
    speaker = Speaker(0)
    speaker.budget.shut(ANNA, for_s=100)
    for _ in range(100):
        assert speaker.budget.take_spare(ANNA) is True
        speaker.send()
    assert speaker.now == 50
