"""Telegram: is the token right, where do updates go, what do groups show us, does another poll."""

import time
from urllib.parse import urlsplit

from bot.features.check.advice import untrusted
from bot.probe import Row, Rows, Verdict
from bot.telegram.bot_api import BotIdentity, TelegramClient, WebhookState
from bot.telegram.errors import (
    BadToken,
    Conflict,
    FloodWait,
    OutcomeUnknown,
    TelegramError,
    Unreachable,
)
from bot.telegram.telegram import WEBHOOK_PATH
from config.settings import Settings
from memory.store.errors import distrust

_LISTEN_S = 3  # another poller calls again within this time, and Telegram then ends our poll
_RECENT_S = 3600


async def check_telegram(settings: Settings, token: str, *, is_release: bool = False) -> Rows:
    """Yield all rows about Telegram; nothing there is changed.

    For a release it is one row: only a refused token fails, because the network may recover.
    """
    client = TelegramClient(token, settings.telegram_api_url)
    try:
        me = await client.identify()
        yield Row("Telegram", "ok", f"the token belongs to @{me.username}")
        if is_release:
            return
        yield privacy(me)
        state = await client.webhook_info()
        take_over = settings.take_over_webhook == "yes"
        yield webhook(state, settings.webhook_url, time.time(), take_over=take_over)
        if not state.url and settings.webhook_url is None:
            yield await _pollers(client)
    except BadToken:
        yield _refused_token(settings)
    except TelegramError as error:
        is_flood, advice = isinstance(error, FloodWait), "no reason to stop: the bot tries again"
        seen = "too many calls at the moment" if is_flood else "no readable answer"
        if isinstance(error, Unreachable):
            seen = untrusted(error, "")[0] if distrust(error) else "not reached"
        if not is_release:
            advice = "check TELEGRAM_API_URL and this machine's network, and try again"
            if isinstance(error, OutcomeUnknown):
                host = urlsplit(settings.telegram_api_url).netloc
                seen = f"{host} did not answer like a Bot API server"
            elif distrust(error):
                advice = untrusted(error, "TELEGRAM_API_URL")[1]
        yield Row("Telegram", "warn" if is_release else "fail", seen, advice)
    finally:
        await client.close()


def privacy(me: BotIdentity) -> Row:
    """Return what groups show the bot; both ways are right."""
    if me.can_read_all_group_messages:
        return Row("Telegram groups", "ok", "privacy mode is off: mentions reach the bot")
    seen = "privacy mode is on: commands and replies reach the bot, plain mentions may not"
    advice = "for all mentions: @BotFather, /setprivacy, Disable; then add the bot to groups again"
    return Row("Telegram groups", "ok", seen, advice)


def webhook(
    state: WebhookState, public_address: str | None, now: float, *, take_over: bool = False
) -> Row:
    """Judge where updates go; `now` is in Unix seconds."""
    # Only the host is shown: the path of another bot's webhook may be secret.
    what, host = "Telegram webhook", urlsplit(state.url).hostname or ""
    waiting = f"{state.pending_updates} waiting"
    if public_address is None and not state.url:
        return Row(what, "ok", f"none, as polling needs it; {waiting}")
    if public_address is None:
        seen = f"set to {host}, but WEBHOOK_URL is not; {waiting}"
        refusal = "the bot does not start: set WEBHOOK_URL, or TAKE_OVER_WEBHOOK=yes to poll"
        removal = f"the next start removes it, and the bot at {host} gets no more messages"
        verdict: Verdict = "warn" if take_over else "fail"
        return Row(what, verdict, seen, removal if take_over else refusal)
    if not state.url:
        return Row(what, "ok", f"none yet, the next start sets it; {waiting}")
    if state.url != public_address.rstrip("/") + WEBHOOK_PATH:
        advice = f"the next start changes it; if another bot serves {host}, it needs its own token"
        return Row(what, "warn", f"set to another address, on {host}; {waiting}", advice)
    if state.last_error_at and now - state.last_error_at < _RECENT_S:
        minutes = int(now - state.last_error_at) // 60
        seen = f"set; {waiting}; a delivery failed {minutes} min ago: {state.last_error}"
        return Row(what, "warn", seen, "can Telegram reach a running bot at WEBHOOK_URL?")
    return Row(what, "ok", f"set; {waiting}")


async def _pollers(client: TelegramClient) -> Row:
    """Poll for a moment. Updates that come stay at Telegram, because we confirm none.

    If this ends the poll of a running bot, that bot polls again by itself.
    """
    what = "Telegram polling"
    try:
        waiting = await client.get_updates(None, _LISTEN_S)
    except Conflict:
        advice = "fine if it is this bot, running; otherwise stop it, or get a token of your own"
        return Row(what, "warn", "another process polls with this token", advice)
    if waiting:
        return Row(what, "unknown", "updates are waiting, so other pollers could not be noticed")
    return Row(what, "ok", "no other poller was noticed")


def _refused_token(settings: Settings) -> Row:
    advice = "copy TELEGRAM_BOT_TOKEN again from @BotFather: /mybots, API Token"
    if settings.telegram_api_url != Settings.model_fields["telegram_api_url"].default:
        # Any website answers the same to a path that it does not have.
        host = urlsplit(settings.telegram_api_url).netloc
        advice += f"; or check TELEGRAM_API_URL: is {host} a Bot API server?"
    return Row("Telegram", "fail", "the token was refused", advice)
