"""The port `Telegram`: our account and what arrives. `HttpTelegram` implements it over HTTP.

The playground passes `PageTelegram` in its place. The page of the webhook checks the secret, and
answers 200 when the update is stored; it does not read the update itself.

`HttpTelegram` prepares our account: identity, webhook or polling, menus and descriptions. Telegram
may be away for a long time, so every step is retried and `health` shows how it goes. Nothing is
undone at shutdown, and no update that waits at Telegram is ever dropped.
"""

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import urlsplit

import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.http_client import has_too_many_values, read_json, read_within
from bot.telegram.bot_api import BotIdentity, CommandMenu, Description, TelegramClient
from bot.telegram.chat import Chat
from bot.telegram.connection import Backoff, Pause, Poller, TelegramHealth, make_way_for_polling
from bot.telegram.errors import DECLINED, BadToken, NotAccepted, TelegramError, WebhookTaken
from bot.telegram.intake import Accept
from config.settings import Settings
from memory.store.store import NamedLease

_WEBHOOK_CHECK_S = 60

log = structlog.get_logger(__name__)

WEBHOOK_PATH = "/telegram"
_MAX_BODY_BYTES = 1_000_000
_BODY_S = 8.0
"""Less than a connection may take for a whole request, so that a slow caller gets an answer."""
_RETRY_AFTER_S = 5


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where Telegram delivers, and the secret it must send: 1 to 256 of A-Z, a-z, 0-9, "_", "-"."""

    url: str
    secret: str


@dataclass(frozen=True, slots=True)
class SetupPlan:
    """What we tell Telegram at the start; without a webhook the bot polls.

    Menus and descriptions are made one after the other, because each language takes time to read.
    """

    webhook: Webhook | None
    menus: Iterable[CommandMenu] = ()
    descriptions: Iterable[Description] = ()


class Telegram(Protocol):
    """Who we are, where everything is sent, and what arrives."""

    @property
    def chat(self) -> Chat:
        """Where everything is sent."""

    async def identify(self, *, polls: bool) -> BotIdentity:
        """Wait until Telegram says who we are; if `polls`, then make sure that we may poll.

        Raise `BadToken` or `WebhookTaken`.
        """

    def receive(self, accept: Accept, plan: SetupPlan) -> Sequence[Coroutine[Any, Any, None]]:
        """Return what runs while updates are taken in: what carries out the plan, then the others.

        The first one ends by itself, the others when they are cancelled. They hand updates on; an
        update that was not accepted comes again.
        """


@dataclass(frozen=True, slots=True)
class HttpTelegram:
    """Implements `Telegram` over HTTP; the process that holds the `lease` polls."""

    client: TelegramClient
    chat: Chat
    health: TelegramHealth
    lease: NamedLease
    take_over: bool = False
    pause: Pause = asyncio.sleep

    async def identify(self, *, polls: bool) -> BotIdentity:
        """Wait until Telegram says who we are; if `polls`, then make sure that we may poll."""
        me = await self._backoff("identify").retry(self.client.identify, BadToken)
        self.health.identity = me
        log.info(
            "bot identified",
            bot_id=me.id,
            username=me.username,
            reads_all_group_messages=me.can_read_all_group_messages,
        )
        if polls:
            make_way = partial(make_way_for_polling, self.client, take_over=self.take_over)
            await self._backoff("read_webhook").retry(make_way, BadToken, WebhookTaken)
        return me

    def receive(self, accept: Accept, plan: SetupPlan) -> Sequence[Coroutine[Any, Any, None]]:
        """Return the setup, and the poller or the watch of the webhook."""
        preparing = self.set_up(plan)
        if plan.webhook is not None:
            return preparing, self.watch_webhook(plan.webhook)
        backoff = self._backoff("poll")
        poller = Poller(self.client, accept, self.lease, backoff, take_over=self.take_over)
        return preparing, poller.run()

    async def set_up(self, plan: SetupPlan) -> None:
        """Set webhook, menus and descriptions; safe to repeat at every start.

        The webhook is set even if its address is right already, because the secret cannot be read
        back. A menu that Telegram declines (of an admin who never wrote to us) is skipped. Raise
        `BadToken`.
        """
        if plan.webhook:
            await self._set_webhook(plan.webhook, BadToken)
            log.info("webhook set")
        set_commands, describe = self.client.set_commands, self.client.set_description
        for menu in plan.menus:
            await self._offer(partial(set_commands, menu), menu.scope, menu.language)
        for each in plan.descriptions:
            await self._offer(partial(describe, each), "description", each.language)

    async def watch_webhook(self, webhook: Webhook) -> None:
        """Until cancelled, read what Telegram says of its deliveries; restore a lost webhook."""
        health = self.health
        while True:
            await self.pause(_WEBHOOK_CHECK_S)
            try:
                state = await self.client.webhook_info()
            except TelegramError as error:
                log.info("webhook state unknown", reason=type(error).__name__)
                continue
            health.webhook_error_at = state.last_error_at or None
            if health.webhook_set and state.url != webhook.url:
                health.webhook_set = False  # until it is set again, the bot is not ready
                host = urlsplit(state.url).hostname or "nowhere"  # a path may be a secret
                log.warning("webhook taken away: another process uses this token", leads_to=host)
                await self._set_webhook(webhook)
                log.info("webhook set again")

    async def _set_webhook(self, webhook: Webhook, *final: type[TelegramError]) -> None:
        # Telegram may decline an address only because its name is not known everywhere yet.
        setting = partial(self.client.set_webhook, webhook.url, webhook.secret)
        await self._backoff("set_webhook").retry(setting, *final)
        self.health.webhook_set = True

    async def _offer(
        self, step: Callable[[], Awaitable[None]], scope: str | int, language: str
    ) -> None:
        # A failure is not shown in our `health`: without menus the bot is ready all the same.
        try:
            backoff = Backoff("set_profile", TelegramHealth(), self.pause)
            await backoff.retry(step, BadToken, *DECLINED)
        except (BadToken, *DECLINED) as error:
            log.info("profile not set", scope=scope, language=language, error=type(error).__name__)

    def _backoff(self, step: str) -> Backoff:
        return Backoff(step, self.health, self.pause)


def webhook_of(settings: Settings) -> Webhook | None:
    """Return where Telegram delivers updates, or None if the bot polls."""
    if settings.webhook_url is None or settings.webhook_secret is None:
        return None
    address = settings.webhook_url.rstrip("/") + WEBHOOK_PATH
    return Webhook(address, settings.webhook_secret.get_secret_value())


def webhook_routes(secret: str, accept: Accept) -> list[Route]:
    """Return the one route. Telegram delivers again whatever is not answered with 200."""

    async def receive(request: Request) -> Response:
        given = request.headers.get("X-Telegram-Bot-Api-Secret-Token", "")
        if not hmac.compare_digest(given.encode(), secret.encode()):
            return Response(status_code=HTTPStatus.FORBIDDEN)
        try:
            async with asyncio.timeout(_BODY_S):
                body = await read_within(request.stream(), _MAX_BODY_BYTES)
        except TimeoutError:
            return Response(status_code=HTTPStatus.REQUEST_TIMEOUT)
        if body is None:
            return Response(status_code=HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        try:
            # An update of so many is taken, or Telegram would send it again and again.
            raw = {} if has_too_many_values(body) else read_json(body)
        except (ValueError, RecursionError):  # the latter if it is nested too deep
            raw = None
        if not isinstance(raw, dict):
            return Response(status_code=HTTPStatus.BAD_REQUEST)
        try:
            await accept(raw)
        except NotAccepted:
            retry_after = {"Retry-After": str(_RETRY_AFTER_S)}
            return Response(status_code=HTTPStatus.SERVICE_UNAVAILABLE, headers=retry_after)
        return Response(status_code=HTTPStatus.OK)

    return [Route(WEBHOOK_PATH, receive, methods=["POST"])]
