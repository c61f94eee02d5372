"""A model that failed is asked less and less often, but at least every 45 s."""

import pytest

from bot.model.resilience import Attempt, CircuitBreaker
from tests.lab.simulated_time import SimulatedClock


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock(100.0)


@pytest.fixture
def breaker(clock: SimulatedClock) -> CircuitBreaker:
    return CircuitBreaker(clock)


def begun(breaker: CircuitBreaker) -> Attempt:
    attempt = breaker.begin()
    assert attempt
    return attempt


def test_a_model_that_never_failed_is_always_asked(breaker: CircuitBreaker) -> None:
    assert not any(begun(breaker).is_probe for _ in range(3))
    assert not breaker.is_open


def test_rests_grow_from_two_to_forty_seconds(
    breaker: CircuitBreaker, clock: SimulatedClock
) -> None:
    pauses = []
    for _ in range(8):
        breaker.failed(begun(breaker), in_silence=False)
        failed_at = clock.now
        while breaker.begin() is None:
            clock.now += 1
        # The loop has begun an attempt; it is abandoned, and the next one fails.
        pauses.append(clock.now - failed_at)
        breaker.abandoned(breaker._probe or Attempt(0, is_probe=True))
    assert pauses == [2, 4, 8, 16, 32, 40, 40, 40]


def test_only_one_attempt_at_a_time_is_a_probe(
    breaker: CircuitBreaker, clock: SimulatedClock
) -> None:
    breaker.failed(begun(breaker), in_silence=False)
    clock.now += 2
    probe = begun(breaker)
    assert probe.is_probe
    assert breaker.begin() is None
    breaker.abandoned(probe)
    assert begun(breaker).is_probe


def test_a_rest_is_counted_from_the_start_of_the_probe(
    breaker: CircuitBreaker, clock: SimulatedClock
) -> None:
    breaker.failed(begun(breaker), in_silence=True)
    clock.now += 2
    probe = begun(breaker)
    clock.now += 40
    breaker.failed(probe, in_silence=True)
    assert begun(breaker).is_probe


def test_attempts_that_already_run_do_not_lengthen_the_rest(
    breaker: CircuitBreaker, clock: SimulatedClock
) -> None:
    under_way = [begun(breaker) for _ in range(9)]
    for attempt in under_way:
        breaker.failed(attempt, in_silence=False)
    clock.now += 2
    assert begun(breaker).is_probe


def test_an_answer_ends_the_rest_and_the_silence(breaker: CircuitBreaker) -> None:
    slow = begun(breaker)
    breaker.failed(begun(breaker), in_silence=True)
    assert breaker.silence.is_set()
    assert breaker.answered(slow)
    assert (breaker.is_open, breaker.silence.is_set()) == (False, False)
    assert not breaker.answered(begun(breaker))
