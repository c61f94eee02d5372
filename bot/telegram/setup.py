"""Prepares our account at Telegram: identity, webhook or polling, menus and descriptions.

Telegram may be away for a long time, so every step is retried and `health` shows how it goes.
Nothing is undone at shutdown, and no update that waits at Telegram is ever dropped.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

import structlog

from bot.telegram.bot_account import BotIdentity, CommandMenu, Description
from bot.telegram.bot_api import TelegramClient
from bot.telegram.connection import Backoff, Pause, TelegramHealth
from bot.telegram.errors import (
    DECLINED,
    BadToken,
    OutcomeUnknown,
    Refused,
    TelegramError,
    WebhookTaken,
)
from bot.telegram.webhook import WEBHOOK_PATH
from config.settings import Settings

_WEBHOOK_CHECK_S = 60

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where Telegram delivers, and the secret it must send: 1 to 256 of A-Z, a-z, 0-9, "_", "-"."""

    url: str
    secret: str


@dataclass(frozen=True, slots=True)
class SetupPlan:
    """What Telegram is told at the start; without a webhook the bot polls."""

    webhook: Webhook | None
    menus: tuple[CommandMenu, ...] = ()
    descriptions: tuple[Description, ...] = ()


async def connect(
    client: TelegramClient, health: TelegramHealth, *, pause: Pause = asyncio.sleep
) -> BotIdentity:
    """Wait until Telegram says who we are; raise `BadToken` if it does not know the token."""
    try:
        me = await Backoff("identify", health, pause).retry(client.identify, BadToken)
    except BadToken as error:
        health.last_error = type(error).__name__
        raise
    health.identity = me
    log.info(
        "bot identified",
        bot_id=me.id,
        username=me.username,
        reads_all_group_messages=me.can_read_all_group_messages,
    )
    return me


async def make_way_for_polling(client: TelegramClient, *, take_over: bool) -> None:
    """Delete a webhook if we may, because Telegram does not allow polling while one is set.

    Raise `WebhookTaken` if we may not: it may belong to another process, which would get no more
    messages without knowing why.
    """
    try:
        state = await client.webhook_info()
    except (BadToken, OutcomeUnknown, Refused) as error:
        # A server may lack this method. Polling is safe: while a webhook is set it is a `Conflict`.
        log.info("webhook state unknown", reason=type(error).__name__)
        return
    if not state.url:
        return
    host = urlsplit(state.url).hostname or ""
    if not take_over:
        raise WebhookTaken(host)
    await client.delete_webhook()
    log.warning("webhook taken over: the process there gets no messages any more", host=host)


async def prepare_polling(
    client: TelegramClient,
    health: TelegramHealth,
    *,
    take_over: bool,
    pause: Pause = asyncio.sleep,
) -> None:
    """Wait until Telegram says whether a webhook is set; raise `WebhookTaken` if we must not poll.

    Raise `BadToken` if Telegram does not know the token.
    """
    make_way = partial(make_way_for_polling, client, take_over=take_over)
    await Backoff("read_webhook", health, pause).retry(make_way, BadToken, WebhookTaken)


async def set_up(
    client: TelegramClient,
    plan: SetupPlan,
    health: TelegramHealth,
    *,
    pause: Pause = asyncio.sleep,
) -> None:
    """Set webhook, menus and descriptions; safe to repeat at every start.

    The webhook is set even if its address is right already, because the secret cannot be read back.
    A menu that Telegram declines (of an admin who never wrote to us) is skipped. Raise `BadToken`.
    """
    if plan.webhook:
        await _set_webhook(client, plan.webhook, Backoff("set_webhook", health, pause), BadToken)
        health.webhook_set = True
        log.info("webhook set")
    # These failures are not shown in `health`: without menus the bot is ready all the same.
    backoff = Backoff("set_profile", TelegramHealth(), pause)
    for menu in plan.menus:
        await _offer(backoff, partial(client.set_commands, menu), menu.scope, menu.language)
    for description in plan.descriptions:
        step = partial(client.set_description, description)
        await _offer(backoff, step, "description", description.language)


async def watch_webhook(
    client: TelegramClient,
    webhook: Webhook,
    health: TelegramHealth,
    *,
    pause: Pause = asyncio.sleep,
) -> None:
    """Until cancelled, read what Telegram says of its deliveries, and restore a lost webhook."""
    while True:
        await pause(_WEBHOOK_CHECK_S)
        try:
            state = await client.webhook_info()
        except TelegramError as error:
            log.info("webhook state unknown", reason=type(error).__name__)
            continue
        health.webhook_error = state.last_error
        health.webhook_error_at = state.last_error_at or None
        if health.webhook_set and state.url != webhook.url:
            health.webhook_set = False  # until it is set again, the bot is not ready
            host = urlsplit(state.url).hostname or "nowhere"  # a path may be a secret
            log.warning("webhook taken away: another process uses this token", leads_to=host)
            await _set_webhook(client, webhook, Backoff("set_webhook", health, pause))
            health.webhook_set = True
            log.info("webhook set again")


async def _set_webhook(
    client: TelegramClient, webhook: Webhook, backoff: Backoff, *final: type[TelegramError]
) -> None:
    # Telegram may decline an address only because its name is not known everywhere yet.
    await backoff.retry(partial(client.set_webhook, webhook.url, webhook.secret), *final)


async def _offer(
    backoff: Backoff, step: Callable[[], Awaitable[None]], scope: str | int, language: str
) -> None:
    try:
        await backoff.retry(step, BadToken, *DECLINED)
    except (BadToken, *DECLINED) as error:
        log.info("menu not set", scope=scope, language=language, error=type(error).__name__)


def webhook_of(settings: Settings) -> Webhook | None:
    """Return where Telegram delivers updates, or None if the bot polls."""
    if settings.webhook_url is None or settings.webhook_secret is None:
        return None
    address = settings.webhook_url.rstrip("/") + WEBHOOK_PATH
    return Webhook(address, settings.webhook_secret.get_secret_value())
