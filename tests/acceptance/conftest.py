"""Rigs for the scenarios. Most run in both intake modes, each with one of the two model APIs."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.acceptance.rig import Rig, open_rig


@pytest.fixture(autouse=True)
def _forked(launcher: None) -> None:
    """Start all bots of these tests by forking."""


@pytest.fixture(params=[("polling", "chat"), ("webhook", "responses")], ids="-".join)
async def rig(request: pytest.FixtureRequest, valkey: str, tmp_path: Path) -> AsyncIterator[Rig]:
    """Give a rig in each intake mode; each uses another API of the model."""
    mode, api = request.param
    async with open_rig(valkey, tmp_path, mode) as opened:
        opened.environment["OPENAI_API"] = api
        yield opened


@pytest.fixture(params=["chat", "responses"])
async def model_rig(
    request: pytest.FixtureRequest, valkey: str, tmp_path: Path
) -> AsyncIterator[Rig]:
    """Give a rig for each API of the model, for scenarios where it may matter."""
    async with open_rig(valkey, tmp_path, "webhook") as opened:
        opened.environment["OPENAI_API"] = request.param
        yield opened


@pytest.fixture
async def webhook_rig(valkey: str, tmp_path: Path) -> AsyncIterator[Rig]:
    """Give a rig for scenarios where the intake mode does not matter."""
    async with open_rig(valkey, tmp_path, "webhook") as opened:
        yield opened
