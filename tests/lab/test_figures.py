"""The figures of a benchmark's samples."""

import pytest

from tests.lab.figures import milliseconds, second_half, slope_an_hour


def test_times_are_given_in_milliseconds() -> None:
    assert milliseconds([0.001 * number for number in range(101)]) == {
        "samples": 101,
        "p50_ms": 50.0,
        "p99_ms": 99.0,
        "max_ms": 100.0,
    }


def test_a_slope_is_given_for_an_hour() -> None:
    times_s = [1_000.0 + 10 * number for number in range(60)]

    assert slope_an_hour(times_s, [50 + 0.01 * at for at in times_s]) == pytest.approx(36)


def test_values_that_swing_without_growing_have_almost_no_slope() -> None:
    times_s = [10.0 * number for number in range(61)]

    assert abs(slope_an_hour(times_s, [50 + number % 2 for number in range(61)])) < 0.1


def test_the_second_half_includes_the_middle_sample() -> None:
    assert second_half([1, 2, 3, 4, 5]) == [3, 4, 5]
