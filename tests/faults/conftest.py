"""Bots of the faults' days are forked, as in the acceptance tests."""

from collections.abc import Iterator

import pytest

from tests.acceptance.forking import bots_forked


@pytest.fixture(scope="session", autouse=True)
def _launcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with bots_forked(tmp_path_factory.mktemp("launcher")):
        yield
