"""Rigs for the scenarios; most run in both intake modes, each with one of the models' two APIs."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.acceptance.rig import Rig, open_rig


@pytest.fixture(autouse=True)
def _forked(launcher: None) -> None:
    """Have all bots here forked."""


@pytest.fixture(params=[("polling", "chat"), ("webhook", "responses")], ids="-".join)
async def rig(request: pytest.FixtureRequest, valkey: str, tmp_path: Path) -> AsyncIterator[Rig]:
    """Give a rig in each intake mode; neither knows of the API by which the model is asked."""
    mode, api = request.param
    async with open_rig(valkey, tmp_path, mode) as opened:
        opened.environment["OPENAI_API"] = api
        yield opened


@pytest.fixture(params=["chat", "responses"])
async def model_rig(
    request: pytest.FixtureRequest, valkey: str, tmp_path: Path
) -> AsyncIterator[Rig]:
    """Give a rig for each API of the model, where that may make a difference."""
    async with open_rig(valkey, tmp_path, "webhook") as opened:
        opened.environment["OPENAI_API"] = request.param
        yield opened


@pytest.fixture
async def webhook_rig(valkey: str, tmp_path: Path) -> AsyncIterator[Rig]:
    """Give a rig for scenarios to which the intake mode makes no difference."""
    async with open_rig(valkey, tmp_path, "webhook") as opened:
        yield opened
