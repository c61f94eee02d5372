"""A cancelled call gives its connection back, whenever it is cancelled."""

import asyncio

import pytest

from bot.telegram.bot_api import TelegramClient
from bot.telegram.chat import Destination
from tests.bot.telegram.rates import unlimited_chat
from tests.servers.bot_api import BotApiServer

CONNECTIONS = 4
STEPS = 60
ROUNDS = 20


async def test_cancelled_calls_keep_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Typing is cancelled after each turn. httpx 0.28 runs out of connections here."""
    monkeypatch.setattr("bot.telegram.bot_api._POOL_SIZE", CONNECTIONS)
    monkeypatch.setattr("bot.telegram.bot_api.CONNECT_S", 1.0)

    async def cancel_after(steps: int) -> None:
        typing = asyncio.create_task(chat.show_typing(Destination(anna.id)))
        for _ in range(steps):
            await asyncio.sleep(0)
        typing.cancel()
        await asyncio.gather(typing, return_exceptions=True)

    async with BotApiServer() as telegram:
        anna = telegram.private_chat(telegram.user(1001, "Anna"))
        client = TelegramClient(telegram.token, telegram.url)
        chat = unlimited_chat(client)
        for _ in range(ROUNDS):
            for first in range(0, STEPS, CONNECTIONS):
                await asyncio.gather(*(cancel_after(first + n) for n in range(CONNECTIONS)))
        await asyncio.gather(*(client.identify() for _ in range(2 * CONNECTIONS)))
        await client.close()
