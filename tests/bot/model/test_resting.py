"""A model that failed is asked less and less often, but at least every 45 s."""

from dataclasses import dataclass

import pytest

from bot.model.resting import Attempt, Rest


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def rest(clock: Clock) -> Rest:
    return Rest(clock)


def begun(rest: Rest) -> Attempt:
    attempt = rest.begin()
    assert attempt
    return attempt


def test_a_model_that_never_failed_is_always_asked(rest: Rest) -> None:
    assert not any(begun(rest).is_probe for _ in range(3))
    assert not rest.is_on


def test_rests_grow_from_two_to_forty_seconds(rest: Rest, clock: Clock) -> None:
    pauses = []
    for _ in range(8):
        rest.failed(begun(rest), in_silence=False)
        failed_at = clock.now
        while rest.begin() is None:
            clock.now += 1
        # The loop has begun an attempt; it is abandoned, and the next one fails.
        pauses.append(clock.now - failed_at)
        rest.abandoned(rest._probe or Attempt(0, is_probe=True))
    assert pauses == [2, 4, 8, 16, 32, 40, 40, 40]


def test_only_one_attempt_at_a_time_is_a_probe(rest: Rest, clock: Clock) -> None:
    rest.failed(begun(rest), in_silence=False)
    clock.now += 2
    probe = begun(rest)
    assert probe.is_probe
    assert rest.begin() is None
    rest.abandoned(probe)
    assert begun(rest).is_probe


def test_a_rest_is_counted_from_the_start_of_the_probe(rest: Rest, clock: Clock) -> None:
    rest.failed(begun(rest), in_silence=True)
    clock.now += 2
    probe = begun(rest)
    clock.now += 40
    rest.failed(probe, in_silence=True)
    assert begun(rest).is_probe


def test_attempts_that_already_run_do_not_lengthen_the_rest(rest: Rest, clock: Clock) -> None:
    under_way = [begun(rest) for _ in range(9)]
    for attempt in under_way:
        rest.failed(attempt, in_silence=False)
    clock.now += 2
    assert begun(rest).is_probe


def test_an_answer_ends_the_rest_and_the_silence(rest: Rest) -> None:
    slow = begun(rest)
    rest.failed(begun(rest), in_silence=True)
    assert rest.silence.is_set()
    assert rest.answered(slow)
    assert (rest.is_on, rest.silence.is_set()) == (False, False)
    assert not rest.answered(begun(rest))
