"""The figures of a benchmark's samples."""

from tests.lab.figures import milliseconds


def test_times_are_given_in_milliseconds() -> None:
    assert milliseconds([0.001 * number for number in range(101)]) == {
        "samples": 101,
        "p50_ms": 50.0,
        "p99_ms": 99.0,
        "max_ms": 100.0,
    }
