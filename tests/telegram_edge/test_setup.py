"""Introducing ourselves to Telegram, however long that takes."""

import asyncio

import pytest

from bot.telegram.client import TelegramClient
from bot.telegram.errors import BadToken
from bot.telegram.health import TelegramHealth
from bot.telegram.setup import SetupPlan, Webhook, connect, set_up
from bot.telegram.values import CommandMenu, Description
from tests.telegram_edge.doubles import Pauses
from tests.telegram_edge.raw import US
from tests.telegram_edge.scripted_api import DONE, ScriptedApi, ok, refusal

HOOK = Webhook("https://bot.example/telegram", "s3cret")
MENUS = (
    CommandMenu("private", "", (("help", "what I can do"),)),
    CommandMenu(7, "", (("stats", "numbers"),)),
    CommandMenu("groups", "de", (("ask", "frag mich"),)),
)


async def test_who_we_are_is_asked_until_telegram_answers(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    api.script("cut", refusal(502, "Bad Gateway"), ok(US))
    pauses = Pauses()
    me = await connect(client, health, pause=pauses)
    assert (me.id, me.username) == (42, "Ricordo_bot")
    assert (health.identity, health.last_error) == (me, "")
    assert len(pauses.taken_s) == 2


async def test_a_token_that_telegram_does_not_know_is_not_tried_again(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    api.script(refusal(401, "Unauthorized"))
    with pytest.raises(BadToken):
        await connect(client, health, pause=Pauses())
    assert health.last_error == "BadToken"


async def test_the_webhook_is_set_however_often_it_takes(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    api.script(refusal(400, "Bad Request: bad webhook: failed to resolve host"), "cut")
    await set_up(client, SetupPlan(HOOK), health, pause=Pauses())
    assert health.webhook_set
    hooks = api.named("setWebhook")
    assert len(hooks) == 3
    assert hooks[-1].parameters["drop_pending_updates"] == "false"


async def test_without_a_webhook_none_is_set(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    await set_up(client, SetupPlan(None), health)
    assert (api.calls, health.webhook_set) == ([], False)


async def test_menus_and_descriptions_are_set(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    plan = SetupPlan(HOOK, MENUS, (Description("de", "Ich erinnere mich."),))
    await set_up(client, plan, health)
    methods = [call.method for call in api.calls]
    assert methods == ["setWebhook", *["setMyCommands"] * 3, "setMyDescription"]


async def test_a_menu_that_telegram_declines_is_passed_over(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    api.script(DONE, refusal(400, "Bad Request: chat not found"))
    pauses = Pauses()
    await set_up(client, SetupPlan(None, MENUS), health, pause=pauses)
    assert len(api.named("setMyCommands")) == 3
    assert pauses.taken_s == []


async def test_a_flood_among_the_menus_is_waited_out(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    api.script(refusal(429, "Too Many Requests", retry_after=3))
    pauses = Pauses()
    await set_up(client, SetupPlan(None, MENUS), health, pause=pauses)
    assert len(api.named("setMyCommands")) == 4
    assert pauses.taken_s[0] > 3


async def test_trouble_with_menus_leaves_the_bot_ready(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    api.script(refusal(429, "Too Many Requests", retry_after=3))
    seen: list[str] = []

    async def look(_: float) -> None:
        seen.append(health.last_error)

    await set_up(client, SetupPlan(None, MENUS), health, pause=look)
    assert seen == [""]


async def test_setting_up_can_be_cancelled_while_it_waits(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    api.script("hang")
    task = asyncio.create_task(set_up(client, SetupPlan(HOOK), health))
    await api.hanging.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not health.webhook_set
