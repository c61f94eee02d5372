"""Rigs for the scenarios; most run in both intake modes."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.acceptance.launcher import READY
from tests.acceptance.rig import ROOT, BotProcess, Rig, open_rig


@pytest.fixture(scope="session", autouse=True)
def _launcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Have bots forked from one process, where the system can watch over a fork."""
    if not hasattr(os, "pidfd_open"):
        yield
        return
    path = str(tmp_path_factory.mktemp("launcher") / "socket")
    command = [sys.executable, "-m", "tests.acceptance.launcher", path]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe) as process:
        assert process.stdout
        assert process.stdout.readline() == READY
        BotProcess.launcher = path
        yield
        process.communicate(timeout=10)


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
