"""The local Telegram: the Bot API over real HTTP, and the people on the other side as objects.

    async with BotApiServer() as server:
        anna = server.user(1, "Anna")
        chat = server.private_chat(anna)
        await anna.say(chat, "Hello")

The bot gets `url` and `token`. The server runs in the event loop that starts it and loads nothing
from outside.
"""

import time
from collections.abc import Callable, Iterable
from secrets import token_urlsafe
from typing import Self, TypeVar

from bot.playground.bot_api.account import Account, Changes
from bot.playground.bot_api.chats import LocalChat, Member
from bot.playground.bot_api.http import HttpApi
from bot.playground.bot_api.methods import METHODS
from bot.playground.bot_api.people import LocalPerson
from bot.playground.bot_api.update_queue import UpdateQueue
from bot.playground.bot_api.values import MenuCommand, StoredFile, User
from bot.playground.bot_api.world import World
from bot.playground.loopback import LoopbackServer

T = TypeVar("T")
BOT = User(7000000001, "Ricordo", username="ricordo_bot", is_bot=True)


class BotApiServer:
    """Serves one bot from `start` to `stop`; also an async context manager."""

    def __init__(self) -> None:
        account = Account(BOT, time.time, Changes())
        updates = UpdateQueue(account.changes, next(account.new_ids()))
        self.updates = updates
        self.token = new_token(BOT)
        self._world = World(account, updates)
        self._server = LoopbackServer(HttpApi(self.token, self._world, METHODS).app())

    @property
    def bot(self) -> User:
        """The bot's own user."""
        return self._world.account.bot

    @property
    def url(self) -> str:
        """The address that the bot uses instead of `https://api.telegram.org`."""
        return self._server.url

    @property
    def change_count(self) -> int:
        """A number that grows with each change of what people see."""
        return self._world.account.changes.count

    async def start(self) -> None:
        """Return when calls are answered; raise `OSError` if the port is taken."""
        await self._server.start()

    async def stop(self) -> None:
        """Cut every connection."""
        await self._server.stop()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def user(self, user_id: int, first_name: str, *, language_code: str = "en") -> LocalPerson:
        """Return a new person."""
        user = User(user_id, first_name, language_code=language_code)
        self._world.users[user_id] = user
        return LocalPerson(self._world, user)

    def private_chat(self, person: LocalPerson) -> LocalChat:
        """Return the chat of a person with the bot."""
        return self._world.private_chat(person.user)

    def forum(self, title: str, admins: Iterable[LocalPerson], number: int) -> LocalChat:
        """Return a supergroup with topics; its id follows from `number`."""
        members = [Member(person.user, "administrator") for person in admins]
        members.append(Member(self.bot, "member"))
        chat = self._world.new_group("supergroup", title, members, number)
        chat.is_forum = True
        return chat

    async def empty(self, chat: LocalChat) -> None:
        """Delete every message of a chat; the bot is not told."""
        chat.empty()
        await self.refresh()

    async def refresh(self) -> None:
        """Wake everybody who waits for a change."""
        await self._world.account.changes.tell()

    def menu(self, person: LocalPerson, chat: LocalChat) -> tuple[MenuCommand, ...]:
        """Return the commands that a person is offered in a chat."""
        return self._world.profile.menu(person.user, chat)

    def file(self, file_id: str) -> StoredFile | None:
        """Return a file that was sent here, None if there is none with this id."""
        return self._world.files.get(file_id)

    async def wait_for(self, found: Callable[[], T | None], timeout_s: float = 60) -> T:
        """Return the result of `found` once it is true; it is called after each change.

        Raise `TimeoutError`.
        """
        return await self._world.account.changes.until(found, timeout_s)


def new_token(bot: User) -> str:
    """Return a token for one run of a server."""
    return f"{bot.id}:{token_urlsafe(16)}"
