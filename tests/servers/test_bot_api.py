"""The local Telegram takes, answers and refuses calls as the Bot API does."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import httpx2
import pytest
from telegram import InputFile
from telegram.error import RetryAfter

from tests.servers.bot_api import BotApiServer, Entity, Upload
from tests.servers.bot_api_client import Scene, raw_client, scene

NOON = 1_800_000_000.0
SMILE = "🙂"
NOT_HERE = ("telegram", "ftp://127.0.0.1/", "http://[", "https://a.example/x")
Row = tuple[str, Mapping[str, object], str]


def entity(kind: str, offset: int, length: int, **more: object) -> dict[str, object]:
    return {"entities": [{"type": kind, "offset": offset, "length": length, **more}]}


def keyboard(*data: str) -> dict[str, object]:
    buttons = [{"text": each, "callback_data": each} for each in data]
    return {"reply_markup": {"inline_keyboard": [buttons]}}


def commands(*names: str, says: str = "what") -> dict[str, object]:
    return {"commands": [{"command": name, "description": says} for name in names]}


async def post(client: httpx2.AsyncClient, method: str, given: Mapping[str, object]) -> Any:
    """Return the answer to a call; without a chat it is about Anna's."""
    form = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in {"chat_id": 1, **given}.items()
    }
    return (await client.post(method, data=form)).json()


async def check_refusals(at: Scene, rows: list[Row]) -> None:
    """Check that each call is refused with this text."""
    async with raw_client(at.server) as client:
        for method, given, text in rows:
            said = str((await post(client, method, given)).get("description", "accepted"))
            assert text.lower() in said.lower(), (method, given)


REFUSED_TEXTS: list[Row] = [
    ("a" * 4097, {}, "message is too long"),
    (SMILE * 2048 + "a", {}, "message is too long"),
    ("", {}, "message text is empty"),
    (" \n ", {}, "text must be non-empty"),
    ("<b>hi", {"parse_mode": "HTML"}, "can't parse entities"),
    ("hi", {"chat_id": 404}, "chat not found"),
    ("hi", {"chat_id": ""}, "chat_id is empty"),
    ("a🙂", entity("bold", -1, 1), "an entity with incorrect offset -1"),
    ("a🙂", entity("bold", 0, -1), "an entity with incorrect length -1"),
    ("a🙂", entity("bold", 4, 1), "begins after the end of the text at utf-16 offset 4"),
    ("a🙂", entity("bold", 1, 3), "ends after the end of the text at utf-16 offset 4"),
    ("a🙂", entity("bold", 2, 1), "entity begins in a middle of a utf-16 symbol"),
    ("a🙂", entity("bold", 0, 2), "ends in a middle of a utf-16 symbol"),
    ("a🙂", entity("marquee", 0, 1), "unsupported type specified"),
    ("a🙂", entity("text_link", 0, 1), "can't find field \"url\""),
    ("hi", keyboard("ü" * 32 + "a"), "button_data_invalid"),
    ("hi", keyboard(""), "text buttons are unallowed in the inline keyboard"),
    ("hi", keyboard(*"x" * 101), "reply markup is too long"),
    ("hi", {"reply_parameters": {"message_id": 12345}}, "message to be replied not found"),
    ("hi", {"entities": "[1]"}, "expected an Object"),
    ("hi", {"reply_markup": {"inline_keyboard": [1]}}, "must be an Array of Arrays"),
]  # fmt: skip
TEXTS = [("sendMessage", {"text": text, **more}, said) for text, more, said in REFUSED_TEXTS]
PROFILE: list[Row] = [
    ("setMyCommands", commands(" "), "command must be non-empty"),
    ("setMyCommands", commands("a" * 33), "command length must not exceed 32"),
    ("setMyCommands", commands("Help"), "BOT_COMMAND_INVALID"),
    ("setMyCommands", commands("a", says=" "), "command description must be non-empty"),
    ("setMyCommands", commands("a", says="a" * 257), "description length must not exceed 256"),
    ("setMyCommands", commands(*(f"c{number}" for number in range(101))), "bad request"),
    ("setMyCommands", commands("a") | {"language_code": "deu"}, "invalid language code"),
    ("setMyCommands", {"scope": {"type": "moon"}}, "bad request"),
    ("setMyDescription", {"description": "a" * 513}, "bad request"),
]  # fmt: skip
RICH: list[Row] = [
    ("sendRichMessage", {"rich_message": {}}, 'can\'t find field "markdown"'),
    ("sendRichMessage", {}, "rich message is empty"),
    ("sendRichMessage", {"rich_message": {"markdown": "a" * 32_769}}, "rich_message_too_long"),
]


async def test_a_call_that_telegram_would_refuse_is_refused_with_its_text() -> None:
    clock = [NOON]
    async with scene(BotApiServer(clock=lambda: clock[0])) as at, raw_client(at.server) as client:
        said = (await at.anna.say(at.chat, "the boat", entities=[Entity("bold", 4, 4)])).id
        old = (await at.bot.send_message(1, "old")).message_id
        clock[0] += 48 * 60 * 60
        asking = await post(client, "sendMessage", {"text": "Sure?", **keyboard("yes")})
        sent = asking["result"]["message_id"]
        file = (await at.bot.send_document(1, InputFile(b"{}", "a.json"))).message_id
        press = await at.anna.press(at.chat.messages[-2], "yes")
        big = await at.anna.send(at.chat, "document", file=Upload(b"\0" * (20 * 2**20 + 1)))
        plain = at.server.group("Plain", [at.anna])
        forum = at.server.group("Forum", [at.anna], forum=True)
        ruled = at.server.group("Ruled", [at.anna], forum=True, bot_is_admin=True)
        trips = forum.topic("Trips").id
        named = {"chat_id": ruled.id, "message_thread_id": ruled.topic("Trips").id}
        theirs = (await at.anna.say(plain, "a")).id
        plain.available_reactions = ["👍"]
        bert = at.server.private_chat(at.server.user(2, "Bert"))
        wrong_quote = {"reply_parameters": {"message_id": said, "quote": "boats"}}
        elsewhere = {"message_id": 1, "chat_id": 404, "allow_sending_without_reply": True}
        general, unknown = ({"chat_id": forum.id, "message_thread_id": n} for n in (1, 12345))
        ours, no_message = {"message_id": said}, {"message_id": 12345}
        there = {"chat_id": plain.id, "message_id": theirs}
        webhook = {"url": "http://127.0.0.1:9/"}
        late = {"callback_query_id": press.id}

        def reacts(emojis: str) -> dict[str, object]:
            return {"reaction": [{"type": "emoji", "emoji": emoji} for emoji in emojis]}

        rows: list[Row] = [
            ("sendTelepathy", {}, "not found: method not found"),
            ("sendMessage", {"text": "a", **wrong_quote}, "QUOTE_TEXT_INVALID"),
            ("sendMessage", {"text": "a", "reply_parameters": elsewhere}, "replied not found"),
            ("sendMessage", {"text": "a", "chat_id": bert.id}, "can't initiate conversation"),
            ("sendMessage", {"text": "a", **general}, "message thread not found"),
            ("sendMessage", {"text": "a", **unknown}, "message thread not found"),
            ("editMessageText", {"message_id": old, "text": "old"}, "message is not modified: "),
            ("editMessageText", {**ours, "text": "a"}, "message can't be edited"),
            ("editMessageText", {**no_message, "text": "a"}, "message to edit not found"),
            ("editMessageText", {"message_id": file, "text": "a"}, "there is no text in the"),
            ("deleteMessage", no_message, "message to delete not found"),
            ("deleteMessage", {"message_id": old}, "message can't be deleted for everyone"),
            ("deleteMessage", there, "message can't be deleted"),
            ("sendDocument", {"document": ""}, "there is no document in the request"),
            ("sendDocument", {"document": "https://a.example"}, "wrong file identifier/http url"),
            ("getFile", {"file_id": "file-0"}, "invalid file_id"),
            ("getFile", {"file_id": big.file.id}, "file is too big"),
            ("sendChatAction", {"action": "dancing"}, "wrong parameter action in request"),
            ("sendMessageDraft", {"draft_id": 0, "text": "a"}, "RANDOM_ID_INVALID"),
            ("sendMessageDraft", {"chat_id": plain.id, "draft_id": 7}, "TEXTDRAFT_PEER_INVALID"),
            ("setMessageReaction", ours | reacts("✅"), "REACTION_INVALID"),
            ("setMessageReaction", ours | reacts("👍👎"), "REACTIONS_TOO_MANY"),
            ("setMessageReaction", no_message | reacts("👌"), "message to react not found"),
            ("setMessageReaction", there | reacts("👌"), "REACTION_INVALID"),
            ("copyMessage", {"from_chat_id": forum.id, "message_id": trips}, "can't be copied"),
            ("leaveChat", {}, "bad request"),
            ("editForumTopic", {"name": "Trips"}, "the chat is not a forum"),
            ("editForumTopic", {"chat_id": forum.id, "name": "a"}, "not enough rights to manage"),
            ("editForumTopic", named | {"name": "n" * 129}, "bad request"),
            ("getChatMember", {"user_id": 404}, "user not found"),
            ("getChatMember", {"user_id": 0}, "invalid user_id specified"),
            ("answerCallbackQuery", {**late, "text": "a" * 201}, "MESSAGE_TOO_LONG"),
            ("answerCallbackQuery", {"callback_query_id": "0"}, "query is too old and response"),
            ("setWebhook", {**webhook, "secret_token": "sp ace"}, "unallowed characters"),
            ("setWebhook", {**webhook, "secret_token": "a" * 257}, "secret token is too long"),
            *(("setWebhook", {"url": url}, "bad request") for url in NOT_HERE),
        ]  # fmt: skip
        await check_refusals(at, [*TEXTS, *PROFILE, *RICH, *rows])
        await at.bot.edit_message_text("Done.", 1, sent)
        assert (at.chat.replies[1].text, at.chat.replies[1].keyboard) == ("Done.", ())


@pytest.mark.parametrize(
    ("kind", "body", "said"),
    [
        ("x-www-form-urlencoded", b"chat_id=1&text=%ED%A0%BD", "must be encoded in UTF-8"),
        ("x-www-form-urlencoded", b"chat_id=1&text=\xff", "must be encoded in UTF-8"),
        ("json", b'{"chat_id": 1, "text": "hi"}', "reads no body of type 'application/json'"),
    ],
)
async def test_a_body_that_cannot_be_read_is_refused(kind: str, body: bytes, said: str) -> None:
    async with scene() as at, raw_client(at.server) as client:
        headers = {"Content-Type": f"application/{kind}"}
        answer = await client.post("sendMessage", content=body, headers=headers)
    assert answer.status_code == 400
    assert said in answer.json()["description"]


async def test_drafts_and_typing_end_with_a_message_or_in_time_and_share_their_limits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PTB_TIMEDELTA", "true")
    clock = [NOON]
    async with scene(BotApiServer(clock=lambda: clock[0])) as at:
        topic = at.chat.add_topic("Boats", 40)
        await at.bot.send_message_draft(1, 7, "I am")
        await at.bot.send_message_draft(1, 8, "There", message_thread_id=topic.id)
        await at.bot.send_chat_action(1, "typing")
        assert at.chat.draft
        assert at.chat.draft.content.text == "I am"
        clock[0] += 5
        await at.bot.send_message(1, "Done")
        assert [at.chat.draft is None, at.chat.draft_in(topic.id) is None] == [True, False]
        clock[0] += 25
        assert at.chat.draft_in(topic.id) is None
        taken: list[int] = []
        for after_s in (0, 5, 5, 20):
            clock[0] += after_s + 60 * (not taken)
            taken.append(0)
            with suppress(RetryAfter):
                while True:
                    await at.bot.send_message_draft(1, 7, "I am")
                    await at.bot.send_chat_action(1, "typing")
                    taken[-1] += 2
    assert taken == [20, 20, 0, 20]
