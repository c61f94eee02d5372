"""Our account is set up at the start, however long Telegram is away."""

import asyncio
import json
from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from bot.telegram.bot_api import (
    ALLOWED_UPDATES,
    BotIdentity,
    CommandMenu,
    Description,
    TelegramClient,
    WebhookState,
)
from bot.telegram.connection import Pause, TelegramHealth
from bot.telegram.errors import BadToken, OutcomeUnknown, WebhookTaken
from bot.telegram.telegram import HttpTelegram, SetupPlan, Webhook
from tests.bot.telegram.doubles import Pauses, ScriptedLease, unlimited_chat
from tests.bot.telegram.raw import US
from tests.bot.telegram.scripted_api import DONE, Reply, ScriptedApi, delivering_to, ok, refusal


async def test_a_method_can_be_called_by_its_name(client: TelegramClient, api: ScriptedApi) -> None:
    api.script(ok({"id": 9}))
    answer = await client.call("sendTomorrow", {"chat_id": 5, "rich": {"a": [1]}, "x": None}, dict)
    assert answer == {"id": 9}
    assert api.calls[0].method == "sendTomorrow"
    assert api.calls[0].parameters == {"chat_id": "5", "rich": '{"a": [1]}'}


async def test_updates_arrive_unchanged_from_the_offset_on(
    client: TelegramClient, api: ScriptedApi
) -> None:
    """Half an emoji, which cannot be stored, ended all polls if it stood in the type of a file."""
    api.script(ok([{"update_id": 8, "something_new": {"x": "\ud83d"}}]))
    assert await client.get_updates(8, 1) == [{"update_id": 8, "something_new": {"x": "\ufffd"}}]
    assert api.calls[0].method == "getUpdates"
    asked = {"offset": "8", "timeout": "1", "allowed_updates": json.dumps(ALLOWED_UPDATES)}
    assert api.calls[0].parameters == asked


@pytest.mark.parametrize("result", [True, "text", [True], [{"no": "id"}], [{"update_id": "7"}]])
async def test_updates_without_an_id_are_not_an_answer(
    client: TelegramClient, api: ScriptedApi, result: object
) -> None:
    api.script(Reply({"ok": True, "result": result}))
    with pytest.raises(OutcomeUnknown):
        await client.get_updates(None, 1)


async def test_a_webhook_is_set_with_its_secret_and_no_update_is_dropped(
    client: TelegramClient, api: ScriptedApi
) -> None:
    await client.set_webhook("https://bot.example/telegram", "s3cret")
    named = {"url": "https://bot.example/telegram", "secret_token": "s3cret"}
    named |= {"allowed_updates": json.dumps(ALLOWED_UPDATES), "drop_pending_updates": "false"}
    assert api.calls[0].parameters == named


async def test_webhook_info_has_the_last_failure(client: TelegramClient, api: ScriptedApi) -> None:
    url, error = "https://bot.example/telegram", "Wrong response from the webhook: 503"
    state = {"url": url, "has_custom_certificate": False, "pending_update_count": 3}
    api.script(ok(state | {"last_error_date": 1_700_000_000, "last_error_message": error}))
    assert await client.webhook_info() == WebhookState(url, 3, 1_700_000_000, error)


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("default", {"type": "default"}),
        ("private", {"type": "all_private_chats"}),
        ("groups", {"type": "all_group_chats"}),
        (7, {"type": "chat", "chat_id": 7}),
    ],
)
async def test_a_menu_is_set_for_its_scope_and_language(
    client: TelegramClient, api: ScriptedApi, scope: str | int, expected: dict[str, object]
) -> None:
    menu = CommandMenu(scope, "de", (("help", "Hilfe"),))  # type: ignore[arg-type]
    await client.set_commands(menu)
    sent = api.calls[0].parameters
    assert json.loads(sent["commands"]) == [{"command": "help", "description": "Hilfe"}]
    assert json.loads(sent["scope"]) == expected
    assert sent["language_code"] == "de"


HOOK = Webhook("https://bot.example/telegram", "s3cret")
MENUS = (
    CommandMenu("private", "", (("help", "what I can do"),)),
    CommandMenu(7, "", (("stats", "numbers"),)),
    CommandMenu("groups", "de", (("ask", "frag mich"),)),
)


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


Made = Callable[..., HttpTelegram]


@pytest.fixture
def bot_api(client: TelegramClient, health: TelegramHealth, pauses: Pauses) -> Made:
    def make(pause: Pause = pauses, **more: bool) -> HttpTelegram:
        chat = unlimited_chat(client)
        return HttpTelegram(client, chat, health, ScriptedLease(), pause=pause, **more)

    return make


async def test_identify_is_retried_until_telegram_answers(
    bot_api: Made, api: ScriptedApi, health: TelegramHealth, pauses: Pauses
) -> None:
    answer = ok(US | {"can_read_all_group_messages": True})
    api.script("cut", refusal(502, "Bad Gateway"), answer)
    me = await bot_api().identify(polls=False)
    assert me == BotIdentity(42, "Ricordo_bot", "Ricordo", can_read_all_group_messages=True)
    assert (health.identity, health.last_error) == (me, "")
    assert len(pauses.taken_s) == 2


async def test_a_bad_token_is_final(
    bot_api: Made, api: ScriptedApi, health: TelegramHealth
) -> None:
    api.script(refusal(401, "Unauthorized"))
    with pytest.raises(BadToken):
        await bot_api().identify(polls=False)
    assert health.last_error == "BadToken"


async def test_setting_the_webhook_is_retried_until_it_succeeds(
    bot_api: Made, api: ScriptedApi, health: TelegramHealth
) -> None:
    api.script(refusal(400, "Bad Request: bad webhook: failed to resolve host"), "cut")
    with capture_logs() as logs:
        await bot_api().set_up(SetupPlan(HOOK))
    assert (health.webhook_set, logs[0]["look_at"]) == (True, "WEBHOOK_URL")
    assert len(api.named("setWebhook")) == 3


async def test_polling_is_refused_while_a_webhook_is_set(bot_api: Made, api: ScriptedApi) -> None:
    taken = delivering_to("https://prod.example.org/secret-path")
    api.script(ok(US), refusal(429, "Too Many Requests", retry_after=1), taken)
    with pytest.raises(WebhookTaken, match=r"to prod\.example\.org\. .*TAKE_OVER_WEBHOOK=yes") as e:
        await bot_api().identify(polls=True)
    assert "secret-path" not in str(e.value)
    assert api.named("deleteWebhook") == []


@pytest.mark.parametrize("url", ["", "https://elsewhere.example/telegram"])
async def test_a_lost_webhook_is_set_again_and_until_then_the_bot_is_not_ready(
    bot_api: Made, api: ScriptedApi, health: TelegramHealth, url: str
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

    task = asyncio.create_task(bot_api(look).watch_webhook(HOOK))
    await ended.wait()
    task.cancel()
    assert seen == [(True, ""), (True, ""), (False, "OutcomeUnknown"), (True, "")]
    assert [call.parameters["url"] for call in api.named("setWebhook")] == [HOOK.url] * 2


async def test_menus_and_descriptions_are_set(bot_api: Made, api: ScriptedApi) -> None:
    await bot_api().set_up(SetupPlan(HOOK, MENUS, (Description("de", "Ich erinnere mich."),)))
    methods = [call.method for call in api.calls]
    assert methods == ["setWebhook", *["setMyCommands"] * 3, "setMyDescription"]


async def test_a_declined_menu_is_skipped(bot_api: Made, api: ScriptedApi, pauses: Pauses) -> None:
    api.script(DONE, refusal(400, "Bad Request: chat not found"))
    await bot_api().set_up(SetupPlan(None, MENUS))
    assert [call.method for call in api.calls] == ["setMyCommands"] * 3  # and no webhook is set
    assert pauses.taken_s == []


async def test_a_429_among_the_menus_is_waited_out_and_leaves_the_bot_ready(
    bot_api: Made, api: ScriptedApi, health: TelegramHealth
) -> None:
    api.script(refusal(429, "Too Many Requests", retry_after=3))
    waited: list[tuple[bool, str]] = []

    async def look(seconds: float) -> None:
        waited.append((seconds > 3, health.last_error))

    await bot_api(look).set_up(SetupPlan(None, MENUS))
    assert len(api.named("setMyCommands")) == 4
    assert waited == [(True, "")]
