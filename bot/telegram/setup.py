"""Introduces us to Telegram: who we are, where updates go, what a "/" offers.

Telegram may be away for long: every step waits for it, and `health` tells how that goes. Nothing
is undone at shutdown, and nothing that waits at Telegram is ever dropped.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar
from urllib.parse import urlsplit

import structlog

from bot.telegram.backoff import Backoff, Pause
from bot.telegram.client import TelegramClient
from bot.telegram.errors import DECLINED, BadToken, TelegramError, WebhookTaken
from bot.telegram.health import TelegramHealth
from bot.telegram.polling import make_way_for_polling
from bot.telegram.values import BotIdentity, CommandMenu, Description

_Answer = TypeVar("_Answer")
_Errors = tuple[type[TelegramError], ...]

# An address that Telegram declines may be one whose name is not known everywhere yet.
_WATCH_S = 60

_FATAL: _Errors = (BadToken,)
_HOPELESS: _Errors = (BadToken, *DECLINED)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where Telegram delivers, and the secret it must show: 1 to 256 of A-Z, a-z, 0-9, "_", "-"."""

    url: str
    secret: str


@dataclass(frozen=True, slots=True)
class SetupPlan:
    """What Telegram is told at start; without a webhook, the bot polls."""

    webhook: Webhook | None
    menus: tuple[CommandMenu, ...] = ()
    descriptions: tuple[Description, ...] = ()


async def connect(
    client: TelegramClient, health: TelegramHealth, *, pause: Pause = asyncio.sleep
) -> BotIdentity:
    """Wait until Telegram says who we are; raise `BadToken` when it says that it does not know."""
    backoff = Backoff("identify", health, pause)
    try:
        me = await _insist(client.identify, backoff, _FATAL)
    except BadToken as error:
        health.last_error = type(error).__name__
        raise
    health.identity = me
    log.info(
        "telegram knows us",
        bot_id=me.id,
        username=me.username,
        reads_all_group_messages=me.can_read_all_group_messages,
    )
    return me


async def prepare_polling(
    client: TelegramClient,
    health: TelegramHealth,
    *,
    take_over: bool,
    pause: Pause = asyncio.sleep,
) -> None:
    """Wait until Telegram says whether a webhook is set; raise `WebhookTaken` for another's."""
    backoff = Backoff("read_webhook", health, pause)
    make_way = partial(make_way_for_polling, client, take_over=take_over)
    await _insist(make_way, backoff, (BadToken, WebhookTaken))


async def set_up(
    client: TelegramClient,
    plan: SetupPlan,
    health: TelegramHealth,
    *,
    pause: Pause = asyncio.sleep,
) -> None:
    """Set webhook, menus and descriptions; safe to repeat at every start.

    The webhook is set even where its address is already right, for the secret cannot be read back.
    A menu that Telegram declines (an admin who never wrote to us) is passed over.
    """
    if plan.webhook:
        set_webhook = partial(client.set_webhook, plan.webhook.url, plan.webhook.secret)
        await _insist(set_webhook, Backoff("set_webhook", health, pause), _FATAL)
        health.webhook_set = True
        log.info("webhook set")
    # Its own health: without menus the bot is ready all the same.
    backoff = Backoff("introduce", TelegramHealth(), pause)
    for menu in plan.menus:
        introduce = partial(client.set_commands, menu)
        await _offer(introduce, backoff, scope=menu.scope, language=menu.language)
    for description in plan.descriptions:
        introduce = partial(client.set_description, description)
        await _offer(introduce, backoff, scope="description", language=description.language)


async def watch_webhook(
    client: TelegramClient,
    webhook: Webhook,
    health: TelegramHealth,
    *,
    pause: Pause = asyncio.sleep,
) -> None:
    """Keep what Telegram says of its deliveries here, until cancelled.

    Set a webhook again that somebody took away: without it no update arrives.
    """
    while True:
        await pause(_WATCH_S)
        try:
            state = await client.webhook_info()
        except TelegramError as error:
            log.info("webhook state unknown", reason=type(error).__name__)
            continue
        health.webhook_error = state.last_error
        health.webhook_error_at = state.last_error_at or None
        if health.webhook_set and state.url != webhook.url:
            await _restore(client, webhook, health, state.url, pause)


async def _restore(
    client: TelegramClient, webhook: Webhook, health: TelegramHealth, url: str, pause: Pause
) -> None:
    """Set the webhook again; until then the bot is not ready."""
    health.webhook_set = False
    host = urlsplit(url).hostname or "nowhere"  # a path may be a secret
    log.warning("webhook taken away: another process uses this token", leads_to=host)
    set_webhook = partial(client.set_webhook, webhook.url, webhook.secret)
    await _insist(set_webhook, Backoff("set_webhook", health, pause), ())
    health.webhook_set = True
    log.info("webhook set again")


async def _offer(
    step: Callable[[], Awaitable[None]], backoff: Backoff, *, scope: str | int, language: str
) -> None:
    try:
        await _insist(step, backoff, _HOPELESS)
    except _HOPELESS as error:
        log.info("menu not set", scope=scope, language=language, error=type(error).__name__)


async def _insist(
    step: Callable[[], Awaitable[_Answer]], backoff: Backoff, final: _Errors
) -> _Answer:
    """Repeat a step that may be repeated until it is done, or fails with a `final` error."""
    while True:
        try:
            answer = await step()
        except final:
            raise
        except TelegramError as error:
            await backoff.wait_out(error)
        else:
            backoff.succeeded()
            return answer
