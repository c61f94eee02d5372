"""Our account is set up at the start, however long Telegram is away."""

import asyncio

import pytest

from bot.telegram.bot_api import CommandMenu, Description, TelegramClient
from bot.telegram.connection import Pause, TelegramHealth
from bot.telegram.errors import BadToken, WebhookTaken
from bot.telegram.telegram import HttpTelegram, SetupPlan, Webhook
from tests.bot.telegram.doubles import Pauses, ScriptedLease
from tests.bot.telegram.rates import unlimited_chat
from tests.bot.telegram.raw import US
from tests.bot.telegram.scripted_api import DONE, Reply, ScriptedApi, ok, refusal

HOOK = Webhook("https://bot.example/telegram", "s3cret")
MENUS = (
    CommandMenu("private", "", (("help", "what I can do"),)),
    CommandMenu(7, "", (("stats", "numbers"),)),
    CommandMenu("groups", "de", (("ask", "frag mich"),)),
)


def bot_api(
    client: TelegramClient, health: TelegramHealth, pause: Pause = asyncio.sleep, **more: bool
) -> HttpTelegram:
    return HttpTelegram(
        client, unlimited_chat(client), health, ScriptedLease(), pause=pause, **more
    )


async def test_identify_is_retried_until_telegram_answers(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    api.script("cut", refusal(502, "Bad Gateway"), ok(US))
    pauses = Pauses()
    me = await bot_api(client, health, pauses).identify(polls=False)
    assert (me.id, me.username) == (42, "Ricordo_bot")
    assert (health.identity, health.last_error) == (me, "")
    assert len(pauses.taken_s) == 2


async def test_an_unknown_token_is_not_tried_again(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    api.script(refusal(401, "Unauthorized"))
    with pytest.raises(BadToken):
        await bot_api(client, health, Pauses()).identify(polls=False)
    assert health.last_error == "BadToken"


async def test_setting_the_webhook_is_retried_until_it_succeeds(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    api.script(refusal(400, "Bad Request: bad webhook: failed to resolve host"), "cut")
    await bot_api(client, health, Pauses()).set_up(SetupPlan(HOOK))
    assert health.webhook_set
    hooks = api.named("setWebhook")
    assert len(hooks) == 3
    assert hooks[-1].parameters["drop_pending_updates"] == "false"


def delivering_to(url: str) -> Reply:
    return ok({"url": url, "has_custom_certificate": False, "pending_update_count": 3})


async def test_polling_is_refused_while_a_webhook_is_set(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    api.script(
        ok(US),
        refusal(429, "Too Many Requests", retry_after=1),
        delivering_to("https://prod.example.org/secret-path"),
    )
    with pytest.raises(WebhookTaken, match=r"to prod\.example\.org\. .*TAKE_OVER_WEBHOOK=yes") as e:
        await bot_api(client, health, Pauses()).identify(polls=True)
    assert "secret-path" not in str(e.value)
    assert api.named("deleteWebhook") == []


async def test_polling_takes_a_webhook_over_if_the_operator_allows_it(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    api.script(ok(US), delivering_to("https://prod.example.org/secret-path"))
    await bot_api(client, health, take_over=True).identify(polls=True)
    assert [call.method for call in api.calls] == ["getMe", "getWebhookInfo", "deleteWebhook"]


@pytest.mark.parametrize("url", ["", "https://elsewhere.example/telegram"])
async def test_a_lost_webhook_is_set_again_and_until_then_the_bot_is_not_ready(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth, url: str
) -> None:
    health.webhook_set = True
    api.script(delivering_to(HOOK.url), delivering_to(url), refusal(502, "Bad Gateway"), DONE)
    seen: list[tuple[bool, str]] = []
    ended = asyncio.Event()

    async def look(_: float) -> None:
        seen.append((health.webhook_set, health.last_error))
        if len(seen) == 4:
            ended.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(bot_api(client, health, look).watch_webhook(HOOK))
    await ended.wait()
    task.cancel()
    assert seen == [(True, ""), (True, ""), (False, "OutcomeUnknown"), (True, "")]
    assert [call.parameters["url"] for call in api.named("setWebhook")] == [HOOK.url] * 2


async def test_without_a_webhook_none_is_set(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    await bot_api(client, health).set_up(SetupPlan(None))
    assert (api.calls, health.webhook_set) == ([], False)


async def test_menus_and_descriptions_are_set(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    plan = SetupPlan(HOOK, MENUS, (Description("de", "Ich erinnere mich."),))
    await bot_api(client, health).set_up(plan)
    methods = [call.method for call in api.calls]
    assert methods == ["setWebhook", *["setMyCommands"] * 3, "setMyDescription"]


async def test_a_menu_that_telegram_declines_is_skipped(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    api.script(DONE, refusal(400, "Bad Request: chat not found"))
    pauses = Pauses()
    await bot_api(client, health, pauses).set_up(SetupPlan(None, MENUS))
    assert len(api.named("setMyCommands")) == 3
    assert pauses.taken_s == []


async def test_a_429_among_the_menus_is_waited_out(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    api.script(refusal(429, "Too Many Requests", retry_after=3))
    pauses = Pauses()
    await bot_api(client, health, pauses).set_up(SetupPlan(None, MENUS))
    assert len(api.named("setMyCommands")) == 4
    assert pauses.taken_s[0] > 3


async def test_a_failure_of_a_menu_leaves_the_bot_ready(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    api.script(refusal(429, "Too Many Requests", retry_after=3))
    seen: list[str] = []

    async def look(_: float) -> None:
        seen.append(health.last_error)

    await bot_api(client, health, look).set_up(SetupPlan(None, MENUS))
    assert seen == [""]


async def test_setting_up_can_be_cancelled_while_it_waits(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    api.script("hang")
    task = asyncio.create_task(bot_api(client, health).set_up(SetupPlan(HOOK)))
    await api.hanging.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not health.webhook_set
