"""`Telegram`, the port to who we are and what arrives, and `BotApi`, which is it over HTTP.

The playground passes `PageTelegram` in its place.
"""

from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from bot.telegram.bot_account import BotIdentity
from bot.telegram.bot_api import TelegramClient
from bot.telegram.chat import Chat
from bot.telegram.connection import Backoff, TelegramHealth
from bot.telegram.intake import Accept
from bot.telegram.polling import Poller, PollingLease
from bot.telegram.setup import SetupPlan, connect, prepare_polling, set_up, watch_webhook


class Telegram(Protocol):
    """Who we are, where everything is sent, and what arrives."""

    @property
    def chat(self) -> Chat:
        """Where everything is sent."""
        ...

    async def identify(self, *, polls: bool) -> BotIdentity:
        """Wait until Telegram says who we are; with `polls`, also that we may poll.

        Raise `BadToken` or `WebhookTaken`.
        """
        ...

    def receive(self, accept: Accept, plan: SetupPlan) -> Sequence[Coroutine[Any, Any, None]]:
        """Return what runs while updates are taken in, until it is cancelled.

        It carries out the plan and hands on updates; one that was not accepted comes again.
        """
        ...


@dataclass(frozen=True, slots=True)
class BotApi:
    """Implements `Telegram` over HTTP; the process that holds the `lease` polls."""

    client: TelegramClient
    chat: Chat
    health: TelegramHealth
    lease: PollingLease
    take_over: bool

    async def identify(self, *, polls: bool) -> BotIdentity:
        """Wait until Telegram says who we are; with `polls`, also that we may poll."""
        me = await connect(self.client, self.health)
        if polls:
            await prepare_polling(self.client, self.health, take_over=self.take_over)
        return me

    def receive(self, accept: Accept, plan: SetupPlan) -> Sequence[Coroutine[Any, Any, None]]:
        """Return the setup, and the poller or the watch of the webhook."""
        preparing = set_up(self.client, plan, self.health)
        if plan.webhook is not None:
            return preparing, watch_webhook(self.client, plan.webhook, self.health)
        backoff = Backoff("poll", self.health)
        poller = Poller(self.client, accept, self.lease, backoff, take_over=self.take_over)
        return preparing, poller.run()
