"""Rigs for the scenarios: each polls or has a webhook, with one of the two APIs of models."""

import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.acceptance.rig import Rig, open_rig


@pytest.fixture(autouse=True)
def _forked(launcher: None) -> None:
    """Start all bots of these tests by forking."""


WAYS = (("polling", "chat"), ("webhook", "responses"))
"""The intake modes, each with another API of models."""

CROSSED = {"test_intake", "test_back_pressure", "test_stop"}
"""Files with rules that depend on the way: their scenarios run in both, all others in one."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Choose the ways of a scenario; if it runs in one, its name decides, so that is constant."""
    if "rig" in metafunc.fixturenames and "rig" in metafunc.function.__annotations__:
        crc = zlib.crc32(metafunc.function.__name__.encode())
        is_crossed = metafunc.module.__name__.rpartition(".")[2] in CROSSED
        ways = WAYS if is_crossed else WAYS[crc % len(WAYS) :][:1]
        metafunc.parametrize("rig", ways, indirect=True, ids="-".join)


@pytest.fixture
async def rig(request: pytest.FixtureRequest, valkey: str, tmp_path: Path) -> AsyncIterator[Rig]:
    """Give a rig in the way that was chosen."""
    mode, api = request.param
    async with open_rig(valkey, tmp_path, mode) as opened:
        opened.environment["OPENAI_API"] = api
        yield opened


@pytest.fixture
async def webhook_rig(valkey: str, tmp_path: Path) -> AsyncIterator[Rig]:
    """Give a rig for scenarios where the intake mode does not matter."""
    async with open_rig(valkey, tmp_path, "webhook") as opened:
        yield opened
