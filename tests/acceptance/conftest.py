"""Rigs for the scenarios: each polls or has a webhook, with one of the two APIs of models."""

import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.rig import Rig, open_rig


@pytest.fixture(autouse=True)
def _forked(launcher: None) -> None:
    """Start all bots of these tests by forking."""


WAYS = (("polling", "chat"), ("webhook", "responses"))
"""The intake modes, each with another API of models."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Choose the ways of a marked scenario; if it runs in either, its name decides which."""
    marked = metafunc.definition.get_closest_marker
    crc = zlib.crc32(metafunc.function.__name__.encode())
    if marked("both_ways"):
        metafunc.parametrize("rig", WAYS, indirect=True, ids="-".join)
    elif marked("either_way"):
        metafunc.parametrize("rig", [WAYS[crc % len(WAYS)]], indirect=True, ids="-".join)


@pytest.fixture
async def rig(
    request: pytest.FixtureRequest,
    launcher: None,  # noqa: ARG001
    valkey: str,
    tmp_path: Path,
) -> AsyncIterator[Rig]:
    """Give a rig in the way that was chosen; in a webhook's, if that does not matter."""
    way: Any = getattr(request, "param", ("webhook", "auto"))
    mode, api = way
    async with open_rig(valkey, tmp_path, mode) as opened:
        opened.environment["OPENAI_API"] = api
        yield opened
