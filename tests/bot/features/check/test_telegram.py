"""What the check finds out about Telegram, from a local one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bot.features.check import telegram as check
from bot.features.check.telegram import check_telegram
from bot.telegram.bot_api import TelegramClient, WebhookState
from bot.telegram.errors import Conflict
from memory.store.tasks import end_tasks
from tests.bot.features.conftest import SettingsOf, rows_of
from tests.servers.bot_api import BotApiServer, DropConnection, FloodWait, ServerError
from tests.settings import Settings

PUBLIC = "https://bot.example"
OURS, OTHER = f"{PUBLIC}/telegram", "https://x.example/1:s"
NOW = 10_000.0


@pytest.fixture
def settings(telegram: BotApiServer, settings_of: SettingsOf) -> Any:
    return settings_of(telegram_bot_token=telegram.token, telegram_api_url=telegram.url)


@pytest.fixture(autouse=True)
def _listen_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "_LISTEN_S", 0)


async def test_a_bot_that_does_not_run_yet_has_only_ok_rows(
    telegram: BotApiServer, settings: Settings
) -> None:
    rows = await rows_of(check_telegram(settings, telegram.token))
    assert {what: (row.verdict, row.seen) for what, row in rows.items()} == {
        "Telegram": ("ok", "the token belongs to @ricordo_bot"),
        "Telegram groups": ("ok", "privacy mode is off: mentions reach the bot"),
        "Telegram webhook": ("ok", "none, as polling needs it; 0 waiting"),
        "Telegram polling": ("ok", "no other poller was noticed"),
    }


@pytest.mark.parametrize("options", [{}, {"is_release": True}])
async def test_a_refused_token_has_one_failed_row_and_is_not_shown(
    settings: Settings, options: dict[str, bool]
) -> None:
    [row] = (await rows_of(check_telegram(settings, "123456:wrong-secret", **options))).values()
    assert (row.verdict, row.seen) == ("fail", "the token was refused")
    assert "wrong-secret" not in repr(row)
    assert "is 127.0.0.1:" in row.advice  # a website answers so for every page


@pytest.mark.parametrize("fault", [DropConnection(), ServerError(502), FloodWait(30)])
async def test_trouble_with_telegram_fails_the_check_but_not_a_release(
    telegram: BotApiServer, settings: Settings, fault: DropConnection | ServerError | FloodWait
) -> None:
    telegram.faults.add(fault, method="getMe", times=None)
    [row] = (await rows_of(check_telegram(settings, telegram.token))).values()
    assert row.verdict == "fail"
    [row] = (await rows_of(check_telegram(settings, telegram.token, is_release=True))).values()
    assert row.verdict == "warn"


async def test_an_unreachable_telegram_does_not_stop_a_release(settings_of: SettingsOf) -> None:
    async with BotApiServer() as gone:
        settings = settings_of(telegram_api_url=gone.url)
    [row] = (await rows_of(check_telegram(settings, "123456:any", is_release=True))).values()
    assert (row.verdict, row.seen) == ("warn", "not reached")


async def test_the_row_of_groups_reports_privacy_mode(settings_of: SettingsOf) -> None:
    async with BotApiServer(privacy_mode=True) as private:
        settings = settings_of(telegram_api_url=private.url)
        rows = await rows_of(check_telegram(settings, private.token))
    assert rows["Telegram groups"].seen.startswith("privacy mode is on")


async def test_another_poller_is_noticed(
    telegram: BotApiServer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "_LISTEN_S", 20)
    async with _another_poller(telegram):
        rows = await rows_of(check_telegram(settings, telegram.token))
    assert rows["Telegram polling"].verdict == "warn"
    assert rows["Telegram polling"].seen == "another process polls with this token"


async def test_the_check_confirms_no_update(telegram: BotApiServer, settings: Settings) -> None:
    anna = telegram.user(1, "Anna")
    await anna.say(telegram.private_chat(anna), "Still there?")
    rows = await rows_of(check_telegram(settings, telegram.token))
    assert rows["Telegram webhook"].seen == "none, as polling needs it; 1 waiting"
    assert rows["Telegram polling"].verdict == "unknown"
    assert telegram.updates.pending_count == 1


@pytest.mark.parametrize(
    ("url", "public", "verdict", "seen"),
    [
        ("", None, "ok", "none, as polling needs it; 2 waiting"),
        ("", PUBLIC, "ok", "none yet, the next start sets it; 2 waiting"),
        (OURS, PUBLIC, "ok", "set; 2 waiting"),
        (OURS, None, "fail", "set to bot.example, but WEBHOOK_URL is not; 2 waiting"),
        (OTHER, PUBLIC, "warn", "set to another address, on x.example; 2 waiting"),
    ],
)
def test_a_webhook_must_fit_settings(url: str, public: str | None, verdict: str, seen: str) -> None:
    row = check.webhook(WebhookState(url, 2, 0, ""), public, NOW)
    assert (row.verdict, row.seen) == (verdict, seen)
    if verdict == "fail":
        row = check.webhook(WebhookState(url, 2, 0, ""), public, NOW, take_over=True)
        assert (row.verdict, "bot.example gets no more messages" in row.advice) == ("warn", True)


@pytest.mark.parametrize(
    ("ago_s", "verdict", "seen"),
    [(120, "warn", "; a delivery failed 2 min ago: Connection timed out"), (7200, "ok", "")],
)
def test_only_a_delivery_that_failed_recently_counts(ago_s: int, verdict: str, seen: str) -> None:
    state = WebhookState(OURS, 3, int(NOW) - ago_s, "Connection timed out")
    row = check.webhook(state, PUBLIC, NOW)
    assert (row.verdict, row.seen) == (verdict, f"set; 3 waiting{seen}")


@asynccontextmanager
async def _another_poller(telegram: BotApiServer) -> AsyncIterator[None]:
    """Poll as a bot that tries again after each conflict."""
    client = TelegramClient(telegram.token, telegram.url)

    async def poll() -> None:
        while True:
            try:
                await client.get_updates(None, 20)
            except Conflict:
                continue

    task = asyncio.create_task(poll())
    await telegram.wait_for(lambda: telegram.calls_to("getUpdates"))
    yield
    await end_tasks([task])
    await client.close()
