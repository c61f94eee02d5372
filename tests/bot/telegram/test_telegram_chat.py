"""What each call to a chat sends, and what it makes of the answer."""

import asyncio
import json
from itertools import repeat

import pytest

from bot.reply.parts import Button, Entity, Part, Quote
from bot.telegram.bot_api import TelegramClient
from bot.telegram.chat import Destination
from bot.telegram.errors import OutcomeUnknown, Refused, TelegramError
from bot.telegram.telegram_chat import TelegramChat
from tests.bot.telegram.doubles import unlimited_chat
from tests.bot.telegram.scripted_api import SENT, TOKEN, Act, Reply, ScriptedApi, ok, refusal
from tests.servers.bot_api import BotApiServer
from tests.servers.web_site import Site

FILE = ok({"file_id": "f", "file_unique_id": "u", "file_path": "documents/file_1.pdf"})


async def test_a_message_carries_text_entities_buttons_topic_and_reply(
    chat: TelegramChat, api: ScriptedApi
) -> None:
    api.script(SENT)
    part = Part(
        "print(1)",
        (Entity("pre", 0, 8, language="python"),),
        ((Button("yes", "y:1"), Button("no", "n:1")),),
    )
    assert await chat.send(Destination(5, 3, reply_to=9), part) == 77
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


async def test_a_plain_message_has_no_other_field(chat: TelegramChat, api: ScriptedApi) -> None:
    api.script(SENT)
    await chat.send(Destination(5), Part("hi"))
    assert set(api.calls[0].parameters) == {"chat_id", "text", "link_preview_options"}


async def test_a_part_quotes_a_message_or_says_the_passage_that_telegram_does_not_find(
    chat: TelegramChat, api: ScriptedApi
) -> None:
    refused = refusal(400, "Bad Request: QUOTE_TEXT_INVALID")
    api.script(SENT, refused, SENT, refused, refused)
    part = Part("hi", quote=Quote(4, "my boat"))
    assert await chat.send(Destination(5, reply_to=9), part) == 77
    assert await chat.send(Destination(5, reply_to=9), part) == 77
    with pytest.raises(Refused):
        await chat.send(Destination(5, reply_to=9), part)
    plain = {"message_id": 4, "allow_sending_without_reply": True}
    quoting = {"message_id": 4, "quote": "my boat", "allow_sending_without_reply": False}
    sent = [json.loads(call.parameters["reply_parameters"]) for call in api.calls]
    assert sent == [quoting, quoting, plain, quoting, plain]
    assert [call.parameters["text"] for call in api.calls[:3]] == ["hi", "hi", "hi\nmy boat"]


async def test_a_rich_part_is_sent_as_markdown_until_the_chat_refuses_one(
    client: TelegramClient, api: ScriptedApi
) -> None:
    chat = unlimited_chat(client)
    rich = Part("| a |\n|---|\n\ud800", is_rich=True)
    api.script(SENT, ok(result=True), refusal(400, "Bad Request: RICH_MESSAGE_INVALID"))
    assert await chat.send(Destination(5, 3, reply_to=9), rich) == 77
    sent = api.calls[0].parameters
    assert set(sent) == {"chat_id", "message_thread_id", "reply_parameters", "rich_message"}
    assert json.loads(sent["rich_message"]) == {"markdown": "| a |\n|---|\n\ufffd"}
    with pytest.raises(OutcomeUnknown):
        await chat.send(Destination(5), rich)
    assert chat.takes_rich(5)
    with pytest.raises(Refused):
        await chat.send(Destination(5), rich)
    assert (chat.takes_rich(5), chat.takes_rich(6)) == (False, True)


async def test_a_draft_hears_only_its_places_messages(chat: TelegramChat, api: ScriptedApi) -> None:
    heard: list[str] = []
    api.script(*[SENT] * 4, refusal(400, "Bad Request: chat not found"), SENT)
    with chat.after_each_send(Destination(5, 3), lambda: heard.append("message")):
        for topic in (3, 0, 4, 3):
            await chat.send(Destination(5, topic), Part("hi"))
        with pytest.raises(Refused):
            await chat.send(Destination(5, 3), Part("hi"))
    assert heard == ["message"] * 2
    await chat.send(Destination(5, 3), Part("hi"))
    assert heard == ["message"] * 2


async def test_a_moment_has_its_time_and_format_and_unknown_entities_are_dropped(
    chat: TelegramChat, api: ScriptedApi
) -> None:
    api.script(SENT)
    dropped = (Entity(kind, 0, 2) for kind in ("hologram", "text_link", "custom_emoji"))
    moment = Entity("date_time", 0, 2, "tg://time?unix=1803888000")
    await chat.send(Destination(5), Part("hi", (*dropped, Entity("bold", 0, 2), moment)))
    place = {"offset": 0, "length": 2}
    assert json.loads(api.calls[0].parameters["entities"]) == [
        {"type": "bold", **place},
        {"type": "date_time", **place, "unix_time": 1803888000, "date_time_format": "wDt"},
    ]


async def test_a_lone_surrogate_is_replaced_when_sent(chat: TelegramChat, api: ScriptedApi) -> None:
    api.script(SENT)
    await chat.send(Destination(5), Part("a\ud83db \U0001f600"))
    assert api.calls[0].parameters["text"] == "a\ufffdb \U0001f600"


async def test_an_edit_replaces_text_and_buttons(chat: TelegramChat, api: ScriptedApi) -> None:
    api.script(SENT)
    await chat.edit(5, 9, Part("done"))
    assert api.calls[0].parameters["text"] == "done"
    assert "reply_markup" not in api.calls[0].parameters


async def test_typing_and_drafts_are_shown_in_topics(chat: TelegramChat, api: ScriptedApi) -> None:
    await chat.show_typing(Destination(-100, 3))
    assert api.calls[0].parameters == {
        "chat_id": "-100",
        "action": "typing",
        "message_thread_id": "3",
    }
    await chat.show_draft(Destination(5, 4), 7, Part("I am"))
    assert api.calls[1].parameters["message_thread_id"] == "4"


async def test_a_long_button_answer_is_cut_to_200(chat: TelegramChat, api: ScriptedApi) -> None:
    await chat.answer_button("cb1", "x" * 300)
    assert api.calls[0].parameters == {"callback_query_id": "cb1", "text": "x" * 200}


USER = {"id": 7, "is_bot": False, "first_name": "A"}


async def test_owners_and_administrators_are_admins(chat: TelegramChat, api: ScriptedApi) -> None:
    statuses = ("creator", "administrator", "member", "left")
    api.script(*(ok({"status": status, "user": USER}) for status in statuses))
    admins = [status for status in statuses if await chat.is_group_admin(-100, 7)]
    assert admins == ["creator", "administrator"]
    moved = refusal(400, "Bad Request: group chat was upgraded", migrate_to_chat_id=-1009)
    api.script(moved, ok({"status": "creator", "user": USER}))
    assert await chat.is_group_admin(-100, 7)
    assert api.calls[-1].parameters["chat_id"] == "-1009"
    api.script(moved, moved, ok({"status": "creator", "user": USER}))
    assert await chat.is_group_admin(-100, 7) is False


@pytest.mark.parametrize(
    "refused",
    [
        refusal(400, "Bad Request: PARTICIPANT_ID_INVALID"),
        refusal(403, "Forbidden: bot was kicked from the supergroup chat"),
    ],
    ids=["no member", "blocked"],
)
async def test_a_person_who_cannot_be_looked_up_is_no_admin(
    chat: TelegramChat, api: ScriptedApi, refused: Reply
) -> None:
    api.script(refused)
    assert await chat.is_group_admin(-100, 7) is False


async def test_a_change_of_nothing_alone_is_no_error(chat: TelegramChat, api: ScriptedApi) -> None:
    api.script(refusal(400, "Bad Request: message is not modified: same content"))
    await chat.edit(5, 9, Part("hi"))
    api.script(refusal(400, "Bad Request: message to delete not found"))
    await chat.delete(5, 9)
    api.script(refusal(400, "Bad Request: message can't be edited"))
    with pytest.raises(Refused):
        await chat.edit(5, 9, Part("hi"))
    api.script(refusal(400, "Bad Request: message can't be deleted for everyone"))
    with pytest.raises(Refused):
        await chat.delete(5, 9)


async def test_a_file_is_looked_up_and_only_its_allowed_bytes_are_downloaded(
    chat: TelegramChat, api: ScriptedApi
) -> None:
    api.script(FILE, Reply(b"content"), FILE, Reply(b"content"))
    assert await chat.download("f", 7) == b"content"
    assert [call.method for call in api.calls] == ["getFile", "file_1.pdf"]
    with pytest.raises(Refused, match="too_big"):
        await chat.download("f", 6)


async def test_a_file_that_is_announced_as_too_big_is_not_downloaded(
    chat: TelegramChat, api: ScriptedApi
) -> None:
    described = {"file_id": "f", "file_unique_id": "u", "file_size": 8, "file_path": "x"}
    api.script(ok(described), refusal(400, "Bad Request: file is too big"))
    for _ in range(2):
        with pytest.raises(Refused, match="too_big"):
            await chat.download("f", 7)
    assert [call.method for call in api.calls] == ["getFile", "getFile"]


async def test_a_file_that_is_longer_than_announced_is_read_up_to_its_bound() -> None:
    async with Site() as site:
        described = b'{"ok": true, "result": {"file_path": "x", "file_size": 1}}'
        site.put(f"/bot{TOKEN}/getFile", described)
        site.put(f"/file/bot{TOKEN}/x", lambda: repeat(bytes(2**16), 1_000))
        client = TelegramClient(TOKEN, site.at("", site.host))
        with pytest.raises(Refused, match="too_big"):
            await client.download("f", 2**17, 60)
        await client.close()
    assert site.sent_bytes < 2**24


@pytest.mark.parametrize(
    ("status", "error"),
    [(302, Refused), (404, Refused), (429, OutcomeUnknown), (502, OutcomeUnknown)],
)
async def test_a_missing_file_is_refused_and_no_redirect_is_followed(
    chat: TelegramChat, api: ScriptedApi, status: int, error: type[TelegramError]
) -> None:
    api.script(FILE, Reply(b"Location", status))
    with pytest.raises(error):
        await chat.download("f", 7)
    assert len(api.calls) == 2


@pytest.mark.parametrize("act", ["cut", "hang"])
async def test_a_download_that_breaks_or_hangs_is_an_error_without_the_token(
    chat: TelegramChat, api: ScriptedApi, act: Act
) -> None:
    api.script(FILE, act)
    with pytest.raises(OutcomeUnknown) as error:
        await chat.download("f", 7, timeout_s=2 if act == "hang" else 60)
    assert TOKEN not in f"{error.value!r} {error.value.__cause__!r}"


async def test_a_copy_names_its_source_and_button(chat: TelegramChat, api: ScriptedApi) -> None:
    api.script(ok({"message_id": 9}), refusal(400, "Bad Request: message can't be copied"))
    copy = Part("", buttons=((Button("No announcements", "mute:"),),), copy_of=(5, 70))
    assert await chat.send(Destination(11), copy) == 9
    sent = api.calls[0].parameters
    assert (sent["chat_id"], sent["from_chat_id"], sent["message_id"]) == ("11", "5", "70")
    [[button]] = json.loads(sent["reply_markup"])["inline_keyboard"]
    assert button == {"text": "No announcements", "callback_data": "mute:"}
    with pytest.raises(Refused, match="not_copied"):
        await chat.send(Destination(12), copy)


CONNECTIONS = 4
STEPS = 60
ROUNDS = 20


async def test_cancelled_calls_keep_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Typing is cancelled after each turn. httpx 0.28 runs out of connections here."""
    monkeypatch.setattr("bot.telegram.bot_api._POOL_SIZE", CONNECTIONS)
    monkeypatch.setattr("bot.telegram.bot_api.CONNECT_S", 1.0)

    async def cancel_after(steps: int) -> None:
        typing = asyncio.create_task(chat.show_typing(Destination(anna.id)))
        for _ in range(steps):
            await asyncio.sleep(0)
        typing.cancel()
        await asyncio.gather(typing, return_exceptions=True)

    async with BotApiServer() as telegram:
        anna = telegram.private_chat(telegram.user(1001, "Anna"))
        client = TelegramClient(telegram.token, telegram.url)
        chat = unlimited_chat(client)
        for _ in range(ROUNDS):
            for first in range(0, STEPS, CONNECTIONS):
                await asyncio.gather(*(cancel_after(first + n) for n in range(CONNECTIONS)))
        await asyncio.gather(*(client.identify() for _ in range(2 * CONNECTIONS)))
        await client.close()
