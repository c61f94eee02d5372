"""Our client before a scripted Bot API."""

from collections.abc import AsyncIterator

import pytest

from bot.telegram.bot_api import TelegramClient
from bot.telegram.connection import TelegramHealth
from bot.telegram.telegram_chat import TelegramChat
from tests.bot.telegram.doubles import unlimited_chat
from tests.bot.telegram.scripted_api import TOKEN, ScriptedApi


@pytest.fixture
async def api() -> AsyncIterator[ScriptedApi]:
    async with ScriptedApi() as scripted:
        yield scripted


@pytest.fixture
async def client(api: ScriptedApi) -> AsyncIterator[TelegramClient]:
    each = TelegramClient(TOKEN, api.url)
    yield each
    await each.close()


@pytest.fixture
def chat(client: TelegramClient) -> TelegramChat:
    """Return the client's chat port without a rate limit."""
    return unlimited_chat(client)


@pytest.fixture
def health() -> TelegramHealth:
    return TelegramHealth(clock=lambda: 1_000.0)
