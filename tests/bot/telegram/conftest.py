"""A client of ours before a scripted Bot API."""

from collections.abc import AsyncIterator

import pytest

from bot.telegram.client import TelegramClient
from bot.telegram.health import TelegramHealth
from tests.bot.telegram.scripted_api import TOKEN, ScriptedApi, scripted_api


@pytest.fixture
async def api() -> AsyncIterator[ScriptedApi]:
    async with scripted_api() as scripted:
        yield scripted


@pytest.fixture
async def client(api: ScriptedApi) -> AsyncIterator[TelegramClient]:
    each = TelegramClient(TOKEN, api.url)
    yield each
    await each.close()


@pytest.fixture
def health() -> TelegramHealth:
    return TelegramHealth(clock=lambda: 1_000.0)
