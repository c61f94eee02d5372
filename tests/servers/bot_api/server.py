"""The local Telegram of the tests: the Bot API over real HTTP, and the people as objects.

async with BotApiServer() as server:
anna = server.user(1, "Anna")
chat = server.private_chat(anna)
await anna.say(chat, "Hello")
reply = await chat.wait_for_reply()

The bot gets `url` and `token`. The server runs in the event loop that starts it.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from secrets import token_urlsafe
from typing import TypeVar

from tests.servers.bot_api.account import Account, Changes
from tests.servers.bot_api.calls import Call, Faults
from tests.servers.bot_api.chats import Chat, ChatKind, Member
from tests.servers.bot_api.http import HttpApi
from tests.servers.bot_api.people import Person
from tests.servers.bot_api.updates import Pace, Updates, WebhookDelivery
from tests.servers.bot_api.values import BotCommand, User
from tests.servers.bot_api.world import World
from tests.servers.dropping import DroppingServer

T = TypeVar("T")
BOT = User(7000000001, "Ricordo", username="ricordo_bot", is_bot=True)


class BotApiServer(DroppingServer):
    """Serves one bot from `start` to `stop`; also an async context manager.

    `faults` are the failures to come, `updates` the deliveries to the bot, `calls` its calls so
    far. With `privacy_mode` getMe reports it, and the bot still gets all messages.
    """

    def __init__(
        self,
        *,
        bot: User = BOT,
        privacy_mode: bool = False,
        pace: Pace | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        account = Account(bot, clock, Changes())
        self.bot = bot
        self.token = f"{bot.id}:{token_urlsafe(16)}"
        self.faults = Faults()
        self.updates = Updates(account.changes, next(account.new_ids()))
        self._world = World(account, self.updates, reads_all=not privacy_mode)
        self._api = HttpApi(self.token, self._world, self.faults)
        super().__init__(self._api.app())
        self._delivery = WebhookDelivery(account, self.updates, pace or Pace())
        self._delivering: asyncio.Task[None] | None = None

    @property
    def calls(self) -> list[Call]:
        return self._api.calls

    def calls_to(self, method: str) -> list[Call]:
        return [call for call in self.calls if call.method == method]

    def set_clock(self, clock: Callable[[], float]) -> None:
        """Date what is sent from now on by this clock; it returns Unix seconds."""
        self._world.account.clock = clock

    async def start(self) -> None:
        """Return when calls are answered."""
        await super().start()
        self._delivering = asyncio.create_task(self._delivery.run())

    async def stop(self) -> None:
        await super().stop()
        if self._delivering:
            self._delivering.cancel()
            await asyncio.wait({self._delivering})

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
        """Return a supergroup that the bot is in, or a basic group; the first admin created it."""
        ranks = [Member(person.user, "member") for person in members]
        ranks += [Member(person.user, "administrator") for person in admins]
        founder = next((rank.user for rank in ranks if rank.is_admin), None)
        if founder:
            ranks.append(Member(founder, "creator"))
        ranks.append(Member(self.bot, "administrator" if bot_is_admin else "member"))
        kind: ChatKind = "group" if basic and not forum else "supergroup"
        chat = self._world.new_group(kind, title, ranks)
        chat.is_forum = forum
        return chat

    def channel(self, title: str, admins: Iterable[Person] = ()) -> Chat:
        ranks = [Member(person.user, "creator") for person in admins]
        ranks.append(Member(self.bot, "administrator"))
        return self._world.new_group("channel", title, ranks)

    def menu(self, person: Person, chat: Chat) -> tuple[BotCommand, ...]:
        return self._world.menu(person.user, chat)

    async def wait_for(self, found: Callable[[], T | None], timeout_s: float = 60) -> T:
        """Return the result of `found` once it is true; it is called after each change.

        Raise `TimeoutError`.
        """
        return await self._world.account.changes.until(found, timeout_s)
