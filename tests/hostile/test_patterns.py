"""No regular expression of the product takes quadratic time."""

import re

import pytest

from tests.hostile.patterns import hidden, modules, patterns, runs, slow
from tests.work import Work, seconds


def test_every_pattern_is_a_constant_of_its_module() -> None:
    assert [place for path in modules() for place in hidden(path)] == []


def test_no_pattern_is_slow_on_a_long_run() -> None:
    found = {
        (name, repeated): growth
        for name, pattern in patterns().items()
        for repeated in dict.fromkeys(runs(pattern))
        if (growth := slow(pattern, repeated))
    }
    formula = patterns()["bot.features.documents.xlsx_text._FORMULA[0]"]
    assert (found, slow(formula, '<c r="A1" ')) == ({}, 0)


@pytest.mark.parametrize(
    ("pattern", "repeated", "is_slow"),
    [
        *((linear, "a", False) for linear in (r"\S+", r"\w+\b", r"[^\W\d_]{2,}", r"(?<!a)a+b")),
        (r"a{1,20}b", "a", False),
        (r"\s+$", " ", True),
        (r"\w+@", "a", True),
        (r"a.*?b", "a", True),
        (r"(\w+)\s*:", "mentioned", True),
        (r"(?:ab)+c", "ab", True),
        (r"a*a*b", "a", True),  # cubic
        (r"(?:a|aa)+b", "a", True),  # exponential
    ],
)
def test_a_slow_pattern_is_found(pattern: str, repeated: str, *, is_slow: bool) -> None:
    assert bool(slow(re.compile(pattern), repeated)) is is_slow


def test_one_interrupted_search_hides_no_slow_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[float] = []

    def interrupted_once(work: Work) -> float:
        measured.append(seconds(work) + 0.001 * (not measured))
        return measured[-1]

    monkeypatch.setattr("tests.hostile.patterns.seconds", interrupted_once)
    assert slow(re.compile(r"\s+$"), " ")
