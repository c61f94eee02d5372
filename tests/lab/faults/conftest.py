"""Bots of the faults' days are forked, as in the acceptance tests."""

import pytest


@pytest.fixture(autouse=True)
def _forked(launcher: None) -> None:
    """Fork all bots of these tests."""
