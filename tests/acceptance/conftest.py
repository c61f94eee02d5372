"""Rigs for the scenarios; most run in both intake modes."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.acceptance.forking import bots_forked
from tests.acceptance.rig import Rig, open_rig


@pytest.fixture(scope="session", autouse=True)
def _launcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with bots_forked(tmp_path_factory.mktemp("launcher")):
        yield


@pytest.fixture(params=["polling", "webhook"])
async def rig(request: pytest.FixtureRequest, valkey: str, tmp_path: Path) -> AsyncIterator[Rig]:
    """Give a rig in each intake mode."""
    async with open_rig(valkey, tmp_path, request.param) as opened:
        yield opened


@pytest.fixture
async def webhook_rig(valkey: str, tmp_path: Path) -> AsyncIterator[Rig]:
    """Give a rig for scenarios to which the intake mode makes no difference."""
    async with open_rig(valkey, tmp_path, "webhook") as opened:
        yield opened
