"""The tests' Telegram: the playground's with faults, refusals, groups, channels and webhooks.

async with BotApiServer() as server:
anna = server.user(1, "Anna")
chat = server.private_chat(anna)
await anna.say(chat, "Hello")
reply = await chat.wait_for_reply()
"""

import asyncio
import time
from collections.abc import Callable, Iterable

from bot.playground.bot_api import people, server
from bot.playground.bot_api.account import Account, Changes
from bot.playground.bot_api.chats import ChatKind, Member
from bot.playground.bot_api.server import BOT, new_token
from bot.playground.bot_api.values import User
from tests.servers.bot_api.calls import Call
from tests.servers.bot_api.chats import Chat, tested
from tests.servers.bot_api.delivery import Pace, WebhookDelivery
from tests.servers.bot_api.faults import Faults
from tests.servers.bot_api.http import HttpApi
from tests.servers.bot_api.methods import METHODS
from tests.servers.bot_api.people import Person
from tests.servers.bot_api.updates import Updates
from tests.servers.bot_api.world import World
from tests.servers.dropping import DroppingServer


class BotApiServer(server.BotApiServer):
    """Serves one bot from `start` to `stop`; also an async context manager.

    `faults` are the failures to come, `updates` the deliveries to the bot, `calls` its calls so
    far. With `privacy_mode` the bot does not see group messages that are not meant for it. With
    `private_topics` private chats have topics.
    """

    _world: World

    def __init__(
        self,
        *,
        port: int = 0,
        bot: User = BOT,
        privacy_mode: bool = False,
        private_topics: bool = False,
        pace: Pace | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        account = Account(bot, clock, Changes())
        self.token = new_token(bot)
        self.faults = Faults()
        self.updates: Updates = Updates(account.changes, next(account.new_ids()))
        self._world = World(
            account, self.updates, reads_all=not privacy_mode, private_topics=private_topics
        )
        self._api = HttpApi(self.token, self._world, METHODS, self.faults)
        self._server = DroppingServer(self._api.app(), port)
        self._delivery = WebhookDelivery(account, self.updates, pace or Pace())
        self._delivering: asyncio.Task[None] | None = None

    @property
    def calls(self) -> list[Call]:
        """Every call so far, oldest first."""
        return self._api.calls

    def grow_files(self, by_mb: int) -> None:
        """Send so many more MB of each file than were announced."""
        self._api.growth_mb = by_mb

    def set_clock(self, clock: Callable[[], float]) -> None:
        """Date what is sent from now on by this clock; it returns Unix seconds."""
        self._world.account.clock = clock

    async def start(self) -> None:
        """Return when calls are answered; raise `OSError` if the port is taken."""
        await super().start()
        self._delivering = asyncio.create_task(self._delivery.run())

    async def stop(self) -> None:
        """Cut every connection and stop delivering."""
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
        """Return a new person or another bot."""
        user = User(user_id, first_name, last_name, username, language_code, is_bot)
        self._world.users[user_id] = user
        return Person(self._world, user)

    def private_chat(self, person: people.LocalPerson) -> Chat:
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

    def forum(self, title: str, admins: Iterable[people.LocalPerson], number: int) -> Chat:
        """Return a supergroup with topics; its id follows from `number`."""
        return tested(super().forum(title, admins, number))

    def channel(self, title: str, admins: Iterable[Person] = ()) -> Chat:
        """Return a channel that the bot is an admin of."""
        ranks = [Member(person.user, "creator") for person in admins]
        ranks.append(Member(self.bot, "administrator"))
        return self._world.new_group("channel", title, ranks)

    def calls_to(self, method: str) -> list[Call]:
        """Return the calls of one method so far, oldest first."""
        return [call for call in self.calls if call.method == method]
