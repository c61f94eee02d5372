"""An empty memory on a real server, local servers, and settings with their addresses."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from bot.probe import Row, Rows
from tests.bot.agent.conftest import context
from tests.bot.features.check.front_reader import FrontReader
from tests.servers.bot_api import BotApiServer
from tests.servers.model_api import ModelApiServer
from tests.settings import Settings

__all__ = ["context"]

SettingsOf = Callable[..., Any]


@pytest.fixture
def settings_of(monkeypatch: pytest.MonkeyPatch) -> SettingsOf:
    """Make settings of exactly the values given."""
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)
    return Settings


@pytest.fixture
async def telegram() -> AsyncIterator[BotApiServer]:
    async with BotApiServer() as server:
        yield server


@pytest.fixture
def reader() -> FrontReader:
    return FrontReader()


@pytest.fixture
async def model_api(reader: FrontReader) -> AsyncIterator[ModelApiServer]:
    async with ModelApiServer(reader) as server:
        yield server


async def rows_of(rows: Rows) -> dict[str, Row]:
    return {row.what: row async for row in rows}
