"""A rig for each attack."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.acceptance.rig import Rig, open_rig


@pytest.fixture
async def rig(launcher: None, valkey: str, tmp_path: Path) -> AsyncIterator[Rig]:  # noqa: ARG001
    async with open_rig(valkey, tmp_path, "webhook") as opened:
        yield opened
