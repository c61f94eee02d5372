"""A client of the local Telegram: python-telegram-bot, which the bot uses too."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx2
from telegram import Bot, Update
from telegram.request import HTTPXRequest

from tests.servers.bot_api import BotApiServer, Chat, Person


@dataclass(frozen=True, slots=True)
class Scene:
    """A server, its bot, and Anna, who has sent "/start"."""

    server: BotApiServer
    bot: Bot
    anna: Person
    chat: Chat

    async def updates(self) -> Sequence[Update]:
        """Return the pending updates, without waiting."""
        return await self.bot.get_updates()


@asynccontextmanager
async def scene(server: BotApiServer | None = None) -> AsyncIterator[Scene]:
    """Yield a scene with nothing left to deliver."""
    plain = {"verify": False}  # it is http, and to load certificates takes longer than a test
    async with server or BotApiServer() as running:
        bot = Bot(
            running.token,
            base_url=f"{running.url}/bot",
            base_file_url=f"{running.url}/file/bot",
            request=HTTPXRequest(httpx_kwargs=plain),
            get_updates_request=HTTPXRequest(httpx_kwargs=plain),
        )
        async with bot:
            anna = running.user(1, "Anna", "Berg", language_code="de")
            chat = running.private_chat(anna)
            await anna.say(chat, "/start")
            await bot.get_updates(offset=running.updates.history[-1].id + 1)
            yield Scene(running, bot, anna, chat)


@asynccontextmanager
async def raw_client(server: BotApiServer) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield a client for what python-telegram-bot would never send."""
    base_url = f"{server.url}/bot{server.token}/"
    async with httpx2.AsyncClient(
        base_url=base_url, timeout=60, trust_env=False, verify=False
    ) as client:
        yield client
