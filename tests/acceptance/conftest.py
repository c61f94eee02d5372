"""Rigs for the scenarios; most run in both intake modes."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.acceptance.rig import Rig, open_rig


@pytest.fixture(autouse=True)
def _forked(launcher: None) -> None:
    """Have all bots here forked."""


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
