"""A call that is cancelled gives its place back, at whatever moment that comes."""

import asyncio

import pytest

from bot.telegram.chat import Destination
from bot.telegram.client import TelegramClient
from tests.servers.bot_api import BotApiServer

PLACES = 4
STEPS = 60
ROUNDS = 20


async def test_cancelled_calls_keep_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """As "typing" is at the end of each turn; PTB's own transport is out of places here."""
    monkeypatch.setattr("bot.telegram.bot_api._POOL_SIZE", PLACES)
    monkeypatch.setattr("bot.telegram.bot_api.CONNECT_S", 1.0)

    async def cancel_after(steps: int) -> None:
        typing = asyncio.create_task(client.show_typing(Destination(chat.id)))
        for _ in range(steps):
            await asyncio.sleep(0)
        typing.cancel()
        await asyncio.gather(typing, return_exceptions=True)

    async with BotApiServer() as telegram:
        chat = telegram.private_chat(telegram.user(1001, "Anna"))
        client = TelegramClient(telegram.token, telegram.url)
        for _ in range(ROUNDS):
            for first in range(0, STEPS, PLACES):
                await asyncio.gather(*(cancel_after(first + n) for n in range(PLACES)))
        await asyncio.gather(*(client.identify() for _ in range(2 * PLACES)))
        await client.close()
