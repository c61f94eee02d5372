"""What the calls about our account and our updates send, and what they make of the answer."""

import json

import pytest

from bot.telegram.bot_api import (
    ALLOWED_UPDATES,
    BotIdentity,
    CommandMenu,
    Description,
    TelegramClient,
    WebhookState,
)
from bot.telegram.errors import OutcomeUnknown
from tests.bot.telegram.scripted_api import Reply, ScriptedApi, ok


async def test_identify_returns_who_we_are(client: TelegramClient, api: ScriptedApi) -> None:
    me = {"id": 42, "is_bot": True, "first_name": "Ricordo", "username": "Ricordo_bot"}
    api.script(ok(me | {"can_read_all_group_messages": True}))
    assert await client.identify() == BotIdentity(
        42, "Ricordo_bot", "Ricordo", can_read_all_group_messages=True
    )


async def test_a_method_can_be_called_by_its_name(client: TelegramClient, api: ScriptedApi) -> None:
    api.script(ok({"id": 9}))
    answer = await client.call("sendTomorrow", {"chat_id": 5, "rich": {"a": [1]}, "x": None}, dict)
    assert answer == {"id": 9}
    assert api.calls[0].method == "sendTomorrow"
    assert api.calls[0].parameters == {"chat_id": "5", "rich": '{"a": [1]}'}


async def test_updates_arrive_unchanged_from_the_offset_on(
    client: TelegramClient, api: ScriptedApi
) -> None:
    update = {"update_id": 8, "something_new": {"x": "\ud83d"}}
    api.script(ok([update]))
    assert await client.get_updates(8, 1) == [update]
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


async def test_webhook_info_returns_the_last_failure(
    client: TelegramClient, api: ScriptedApi
) -> None:
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


async def test_the_default_description_names_no_language(
    client: TelegramClient, api: ScriptedApi
) -> None:
    await client.set_description(Description("", "I remember."))
    assert api.calls[0].parameters == {"description": "I remember."}
