"""No regular expression of the product takes quadratic time."""

from tests.hostile.patterns import hidden, modules, patterns, runs, slow


def test_every_pattern_is_a_constant_of_its_module() -> None:
    assert [place for path in modules() for place in hidden(path)] == []


def test_no_pattern_is_slow_on_a_long_run() -> None:
    found = {
        (name, repeated): taken
        for name, pattern in patterns().items()
        for repeated in dict.fromkeys(runs(pattern))
        if (taken := slow(pattern, repeated))
    }

    assert found == {}
