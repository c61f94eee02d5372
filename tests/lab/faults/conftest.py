"""Bots of the faults' days are forked, as in the acceptance tests."""

import pytest


@pytest.fixture(autouse=True)
def _forked(launcher: None) -> None:
    """Fork all bots of these tests."""


@pytest.hookimpl(trylast=True)  # of those that `-m` leaves
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spread the days over most of the run: they wait, and other tests use the cores meanwhile."""
    days = [each for each in items if each.path.name == "test_faults.py"]
    ordered = [each for each in items if each not in days]
    others_between = len(ordered) * 4 // 5 // max(1, len(days))
    for number, day in enumerate(days):
        ordered.insert(number * (others_between + 1), day)
    items[:] = ordered
