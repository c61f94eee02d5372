"""A local Telegram: the Bot API over real HTTP, and the people on the other side.

    async with BotApiServer() as server:
        anna = server.user(1, "Anna")
        chat = server.private_chat(anna)
        await anna.say(chat, "Hello")
        reply = await chat.wait_for_reply()

The bot talks to `url` with `token` and cannot tell the difference, as far as it uses Telegram. The
server lives in the event loop it is started in and loads nothing from outside.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from secrets import token_urlsafe
from typing import Self, TypeVar

from bot.playground.bot_api.account import Account
from bot.playground.bot_api.calls import Call
from bot.playground.bot_api.changes import Changes
from bot.playground.bot_api.chats import Chat, ChatKind, Member
from bot.playground.bot_api.delivery import Pace, WebhookDelivery
from bot.playground.bot_api.faults import Faults
from bot.playground.bot_api.http import HttpApi
from bot.playground.bot_api.people import Person
from bot.playground.bot_api.updates import Updates
from bot.playground.bot_api.values import BotCommand, StoredFile, User
from bot.playground.bot_api.world import World
from bot.playground.loopback import LoopbackServer

T = TypeVar("T")
BOT = User(7000000001, "Ricordo", username="ricordo_bot", is_bot=True)


class BotApiServer:
    """Serves one bot from `start` to `stop`; also an async context manager.

    `faults` is what shall go wrong, `updates` the deliveries to the bot, `calls` what it asked for.
    `privacy_mode` keeps group talk from the bot that is not meant for it.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        bot: User = BOT,
        privacy_mode: bool = False,
        pace: Pace | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.bot = bot
        self.token = f"{bot.id}:{token_urlsafe(16)}"
        self.faults = Faults()
        self._changes = Changes()
        account = Account(bot, clock, self._changes)
        self.updates = Updates(self._changes, next(account.new_ids()))
        self._world = World(account, self.updates, reads_all=not privacy_mode)
        self._api = HttpApi(self.token, self._world, self.faults)
        self._server = LoopbackServer(self._api.app(), port)
        self._delivery = WebhookDelivery(account, self.updates, pace or Pace())
        self._delivering: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """What the bot takes for `https://api.telegram.org`."""
        return self._server.url

    @property
    def calls(self) -> list[Call]:
        """Every call so far, oldest first."""
        return self._api.calls

    @property
    def change_count(self) -> int:
        """How much has happened: as long as it stays, every chat looks the same."""
        return self._changes.count

    async def start(self) -> None:
        """Return when calls are answered; raise `OSError` when the port is taken."""
        await self._server.start()
        self._delivering = asyncio.create_task(self._delivery.run())

    async def stop(self) -> None:
        """Cut every connection and deliver nothing any more."""
        await self._server.stop()
        if self._delivering:
            self._delivering.cancel()
            await asyncio.wait({self._delivering})

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def user(
        self,
        user_id: int,
        first_name: str,
        last_name: str = "",
        *,
        username: str = "",
        language_code: str = "en",
        is_bot: bool = False,
    ) -> Person:
        """Return somebody with an account."""
        user = User(user_id, first_name, last_name, username, language_code, is_bot)
        self._world.users[user_id] = user
        return Person(self._world, user)

    def private_chat(self, person: Person) -> Chat:
        """Return the chat of a person with the bot, which must be written to first."""
        return self._world.private_chat(person.user)

    def group(
        self,
        title: str,
        members: Iterable[Person] = (),
        admins: Iterable[Person] = (),
        *,
        forum: bool = False,
        basic: bool = False,
        bot_is_admin: bool = False,
    ) -> Chat:
        """Return a supergroup that the bot is in, or a basic group; the first admin made it."""
        ranks = [Member(person.user, "member") for person in members]
        ranks += [Member(person.user, "administrator") for person in admins]
        founder = next((rank.user for rank in ranks if rank.is_admin), None)
        if founder:
            ranks.append(Member(founder, "creator"))
        ranks.append(Member(self.bot, "administrator" if bot_is_admin else "member"))
        kind: ChatKind = "group" if basic and not forum else "supergroup"
        return self._world.new_group(kind, title, ranks, is_forum=forum)

    def forum(self, title: str, admins: Iterable[Person], number: int) -> Chat:
        """Return a supergroup with topics; its id comes from `number` and is known beforehand."""
        ranks = [Member(person.user, "administrator") for person in admins]
        ranks.append(Member(self.bot, "member"))
        return self._world.new_group("supergroup", title, ranks, is_forum=True, number=number)

    def channel(self, title: str, admins: Iterable[Person] = ()) -> Chat:
        """Return a channel that the bot is an admin of."""
        ranks = [Member(person.user, "creator") for person in admins]
        ranks.append(Member(self.bot, "administrator"))
        return self._world.new_group("channel", title, ranks)

    async def empty(self, chat: Chat) -> None:
        """Take every message of a chat away for everybody; the bot is not told."""
        chat.empty()
        await self._changes.tell()

    async def refresh(self) -> None:
        """Wake everybody who waits for a change."""
        await self._changes.tell()

    def menu(self, person: Person, chat: Chat) -> tuple[BotCommand, ...]:
        """Return the commands that a person is offered in a chat."""
        return self._world.profile.menu(person.user, chat)

    def file(self, file_id: str) -> StoredFile | None:
        """Return a file that was sent here, or nothing when there is none of this id."""
        return self._world.files.get(file_id)

    def calls_to(self, method: str) -> list[Call]:
        """Return the calls of one method so far, oldest first."""
        return [call for call in self.calls if call.method == method]

    async def wait_for(self, found: Callable[[], T | None], timeout_s: float = 10) -> T:
        """Return what `found` returns once that is true; it is asked after everything that happens.

        Raises `TimeoutError`.
        """
        return await self._changes.until(found, timeout_s)
