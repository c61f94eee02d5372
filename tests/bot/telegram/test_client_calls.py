"""What each call sends, and what it makes of the answer."""

import json

import pytest

from bot.reply.parts import Button, Entity, Part
from bot.telegram.chat import Destination
from bot.telegram.client import TelegramClient
from bot.telegram.values import BotIdentity, CommandMenu, Description, WebhookState
from tests.bot.telegram.scripted_api import ScriptedApi, ok

SENT = ok({"message_id": 77, "date": 1, "chat": {"id": 5, "type": "private"}, "text": "x"})


async def test_identify_says_who_we_are(client: TelegramClient, api: ScriptedApi) -> None:
    api.script(
        ok(
            {
                "id": 42,
                "is_bot": True,
                "first_name": "Ricordo",
                "username": "Ricordo_bot",
                "can_read_all_group_messages": True,
            }
        )
    )
    assert await client.identify() == BotIdentity(
        42, "Ricordo_bot", "Ricordo", can_read_all_group_messages=True
    )


async def test_send_carries_text_entities_buttons_topic_and_reply(
    client: TelegramClient, api: ScriptedApi
) -> None:
    api.script(SENT)
    part = Part(
        "print(1)",
        (Entity("pre", 0, 8, language="python"),),
        ((Button("yes", "y:1"), Button("no", "n:1")),),
    )
    assert await client.send(Destination(5, 3, reply_to=9), part) == 77
    sent = api.calls[0].parameters
    assert (sent["chat_id"], sent["text"], sent["message_thread_id"]) == ("5", "print(1)", "3")
    assert json.loads(sent["entities"]) == [
        {"type": "pre", "offset": 0, "length": 8, "language": "python"}
    ]
    assert json.loads(sent["reply_markup"]) == {
        "inline_keyboard": [
            [{"text": "yes", "callback_data": "y:1"}, {"text": "no", "callback_data": "n:1"}]
        ]
    }
    assert json.loads(sent["reply_parameters"]) == {
        "message_id": 9,
        "allow_sending_without_reply": True,
    }
    assert json.loads(sent["link_preview_options"]) == {"is_disabled": True}


async def test_a_plain_send_names_no_topic_reply_or_keyboard(
    client: TelegramClient, api: ScriptedApi
) -> None:
    api.script(SENT)
    await client.send(Destination(5), Part("hi"))
    assert set(api.calls[0].parameters) == {"chat_id", "text", "link_preview_options"}


async def test_unknown_entities_are_dropped_and_the_words_sent(
    client: TelegramClient, api: ScriptedApi
) -> None:
    api.script(SENT)
    entities = (
        Entity("hologram", 0, 2),
        Entity("text_link", 0, 2),
        Entity("custom_emoji", 0, 2),
        Entity("bold", 0, 2),
    )
    await client.send(Destination(5), Part("hi", entities))
    assert json.loads(api.calls[0].parameters["entities"]) == [
        {"type": "bold", "offset": 0, "length": 2}
    ]


async def test_a_lone_surrogate_is_replaced_before_it_is_sent(
    client: TelegramClient, api: ScriptedApi
) -> None:
    api.script(SENT)
    await client.send(Destination(5), Part("a\ud83db \U0001f600"))
    assert api.calls[0].parameters["text"] == "a\ufffdb \U0001f600"


async def test_edit_replaces_text_and_takes_the_buttons_away(
    client: TelegramClient, api: ScriptedApi
) -> None:
    api.script(SENT)
    await client.edit(5, 9, Part("done"))
    assert api.calls[0].parameters["text"] == "done"
    assert "reply_markup" not in api.calls[0].parameters


async def test_typing_is_shown_in_the_topic(client: TelegramClient, api: ScriptedApi) -> None:
    await client.show_typing(Destination(-100, 3))
    assert api.calls[0].parameters == {
        "chat_id": "-100",
        "action": "typing",
        "message_thread_id": "3",
    }


async def test_a_button_is_answered_in_at_most_200_characters(
    client: TelegramClient, api: ScriptedApi
) -> None:
    await client.answer_button("cb1", "x" * 300)
    assert api.calls[0].parameters == {"callback_query_id": "cb1", "text": "x" * 200}


USER = {"id": 7, "is_bot": False, "first_name": "A"}
NO_RIGHTS = {
    "can_be_edited": False,
    "is_anonymous": False,
    "can_manage_chat": False,
    "can_delete_messages": False,
    "can_manage_video_chats": False,
    "can_restrict_members": False,
    "can_promote_members": False,
    "can_change_info": False,
    "can_invite_users": False,
    "can_post_stories": False,
    "can_edit_stories": False,
    "can_delete_stories": False,
}


async def test_owner_and_administrators_are_group_admins(
    client: TelegramClient, api: ScriptedApi
) -> None:
    statuses = ("creator", "administrator", "member", "left")
    api.script(*(ok({"status": status, "user": USER, **NO_RIGHTS}) for status in statuses))
    admins = [status for status in statuses if await client.is_group_admin(-100, 7)]
    assert admins == ["creator", "administrator"]


async def test_updates_come_raw_from_the_offset_on(
    client: TelegramClient, api: ScriptedApi
) -> None:
    update = {"update_id": 8, "something_new": {"x": "\ud83d"}}
    api.script(ok([update]))
    assert await client.get_updates(8, 1) == [update]
    assert api.calls[0].method == "getUpdates"
    assert api.calls[0].parameters == {
        "offset": "8",
        "timeout": "1",
        "allowed_updates": '["message", "callback_query", "my_chat_member"]',
    }


async def test_a_webhook_is_set_with_its_secret_and_nothing_is_dropped(
    client: TelegramClient, api: ScriptedApi
) -> None:
    await client.set_webhook("https://bot.example/telegram", "s3cret")
    assert api.calls[0].parameters == {
        "url": "https://bot.example/telegram",
        "secret_token": "s3cret",
        "allowed_updates": '["message", "callback_query", "my_chat_member"]',
        "drop_pending_updates": "false",
    }


async def test_webhook_info_tells_the_last_failure(
    client: TelegramClient, api: ScriptedApi
) -> None:
    api.script(
        ok(
            {
                "url": "https://bot.example/telegram",
                "has_custom_certificate": False,
                "pending_update_count": 3,
                "last_error_date": 1_700_000_000,
                "last_error_message": "Wrong response from the webhook: 503",
            }
        )
    )
    assert await client.webhook_info() == WebhookState(
        "https://bot.example/telegram", 3, 1_700_000_000, "Wrong response from the webhook: 503"
    )


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("default", {"type": "default"}),
        ("private", {"type": "all_private_chats"}),
        ("groups", {"type": "all_group_chats"}),
        (7, {"type": "chat", "chat_id": 7}),
    ],
)
async def test_menus_are_set_by_scope_and_language(
    client: TelegramClient, api: ScriptedApi, scope: str | int, expected: dict[str, object]
) -> None:
    menu = CommandMenu(scope, "de", (("help", "Hilfe"),))  # type: ignore[arg-type]
    await client.set_commands(menu)
    sent = api.calls[0].parameters
    assert json.loads(sent["commands"]) == [{"command": "help", "description": "Hilfe"}]
    assert json.loads(sent["scope"]) == expected
    assert sent["language_code"] == "de"


async def test_a_description_for_everybody_else_names_no_language(
    client: TelegramClient, api: ScriptedApi
) -> None:
    await client.set_description(Description("", "I remember."))
    assert api.calls[0].parameters == {"description": "I remember."}
