from contextlib import suppress

import pytest
from telegram import (
    ForceReply,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputFile,
    MessageEntity,
    ReplyParameters,
    User,
)
from telegram.constants import ChatAction, ParseMode
from telegram.error import BadRequest, RetryAfter

from tests.servers.bot_api import BotApiServer, Button, Entity, Upload
from tests.servers.bot_api_client import raw_client, refusal, scene

NOT_MODIFIED = (
    "Message is not modified: specified new message content and reply markup are exactly the same "
    "as a current content and reply markup of the message"
)
QUERY_TOO_OLD = "Query is too old and response timeout expired or query id is invalid"


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def keyboard(*data: str) -> InlineKeyboardMarkup:
    return InlineKeyboardMarkup([[InlineKeyboardButton(each, callback_data=each)] for each in data])


async def test_a_message_of_the_bot_is_visible_in_the_chat() -> None:
    async with scene() as at:
        entities = [MessageEntity("bold", 0, 5), MessageEntity("pre", 6, 2, language="python")]
        sent = await at.bot.send_message(at.chat.id, "Hello 👋", entities=entities)

        seen = at.chat.messages[-1]
        assert (sent.message_id, sent.text, sent.chat_id) == (seen.id, "Hello 👋", 1)
        assert sent.from_user == await at.bot.get_me()
        assert list(sent.entities) == entities
        bold, pre = Entity("bold", 0, 5), Entity("pre", 6, 2, language="python")
        assert seen.entities == (bold, pre)
        assert at.chat.replies == [seen]


@pytest.mark.parametrize("text", ["a" * 4096, "🙂" * 2048])
async def test_a_text_may_have_4096_units(text: str) -> None:
    async with scene() as at:
        assert (await at.bot.send_message(at.chat.id, text)).text == text


@pytest.mark.parametrize("text", ["a" * 4097, "🙂" * 2048 + "a"])
async def test_a_longer_text_is_refused(text: str) -> None:
    async with scene() as at:
        with pytest.raises(BadRequest) as caught:
            await at.bot.send_message(at.chat.id, text)

    assert refusal(caught) == "Message is too long"


@pytest.mark.parametrize(
    ("text", "expected"), [("", "Message text is empty"), (" \n ", "Text must be non-empty")]
)
async def test_an_empty_text_is_refused(text: str, expected: str) -> None:
    async with scene() as at:
        with pytest.raises(BadRequest) as caught:
            await at.bot.send_message(at.chat.id, text)

    assert refusal(caught) == expected


async def test_whitespace_around_a_text_is_cut_and_entities_move_along() -> None:
    async with scene() as at:
        entities = [MessageEntity("bold", 4, 6)]
        sent = await at.bot.send_message(at.chat.id, "  🙂bold \n", entities=entities)

        assert (sent.text, list(sent.entities)) == ("🙂bold", [MessageEntity("bold", 2, 4)])


async def test_whitespace_within_an_entity_at_the_front_stays() -> None:
    async with scene() as at:
        sent = await at.bot.send_message(at.chat.id, "  x", entities=[MessageEntity("pre", 1, 2)])

        assert (sent.text, list(sent.entities)) == (" x", [MessageEntity("pre", 0, 2)])


async def test_links_mentions_and_emoji_keep_what_they_point_to() -> None:
    async with scene() as at:
        entities = [
            MessageEntity("text_link", 0, 1, url="https://example.org/"),
            MessageEntity("text_mention", 1, 1, user=User(1, "Anna", is_bot=False)),
            MessageEntity("text_mention", 2, 1, user=User(99, "Nobody", is_bot=False)),
            MessageEntity("custom_emoji", 3, 1, custom_emoji_id="5"),
        ]
        await at.bot.send_message(at.chat.id, "abcd", entities=entities)

        link, mention, emoji = at.chat.messages[-1].entities
        assert link.url == "https://example.org/"
        assert mention.user == at.anna.user
        assert emoji.custom_emoji_id == "5"


async def test_entities_that_telegram_finds_by_itself_are_ignored() -> None:
    async with scene() as at:
        entities = [MessageEntity("mention", 0, 5), MessageEntity("bold", 0, 0)]
        sent = await at.bot.send_message(at.chat.id, "@anna", entities=entities)

        assert sent.entities == ()


async def test_entities_over_a_hundred_are_ignored() -> None:
    async with scene() as at:
        entities = [MessageEntity("bold", offset, 1) for offset in range(150)]
        sent = await at.bot.send_message(at.chat.id, "a" * 150, entities=entities)

        assert list(sent.entities) == entities[:100]


@pytest.mark.parametrize(
    ("entity", "expected"),
    [
        (MessageEntity("bold", -1, 1), "Receive an entity with incorrect offset -1"),
        (MessageEntity("bold", 0, -1), "Receive an entity with incorrect length -1"),
        (
            MessageEntity("bold", 4, 1),
            "Entity begins after the end of the text at utf-16 offset 4",
        ),
        (
            MessageEntity("bold", 1, 3),
            "Entity beginning at utf-16 offset 1 ends after the end of the text at utf-16 offset 4",
        ),
        (MessageEntity("bold", 2, 1), "Entity begins in a middle of a utf-16 symbol"),
        (
            MessageEntity("bold", 0, 2),
            "Entity beginning at utf-16 offset 0 ends in a middle of a utf-16 symbol",
        ),
        (
            MessageEntity("marquee", 0, 1),
            "Can't parse messageentity: unsupported type specified",
        ),
        (
            MessageEntity("text_link", 0, 1),
            "Can't parse messageentity: can't find field \"url\"",
        ),
    ],
)
async def test_an_entity_outside_the_text_is_refused(entity: MessageEntity, expected: str) -> None:
    async with scene() as at:
        with pytest.raises(BadRequest) as caught:
            await at.bot.send_message(at.chat.id, "a🙂", entities=[entity])

    assert refusal(caught).lower() == expected.lower()


@pytest.mark.parametrize(
    "entities", ['{"type": "bold"}', "[1]", '[{"type": "bold"}]', "[", '[{"offset": "x"}]']
)
async def test_invalid_entities_are_refused(entities: str) -> None:
    async with scene() as at, raw_client(at.server) as client:
        given = {"chat_id": at.chat.id, "text": "hello", "entities": entities}
        answer = await client.post("sendMessage", data=given)

    assert answer.json()["error_code"] == 400


async def test_markup_is_refused_as_unreadable() -> None:
    async with scene() as at:
        with pytest.raises(BadRequest) as caught:
            await at.bot.send_message(at.chat.id, "<b>hi", parse_mode=ParseMode.HTML)

    assert refusal(caught).startswith("Can't parse entities")


async def test_an_unknown_chat_is_refused() -> None:
    async with scene() as at:
        with pytest.raises(BadRequest) as caught:
            await at.bot.send_message(404, "hello")

    assert refusal(caught) == "Chat not found"


async def test_a_reply_carries_what_it_replies_to() -> None:
    async with scene() as at:
        asked = await at.anna.say(at.chat, "Where?")
        sent = await at.bot.send_message(at.chat.id, "There", reply_to_message_id=asked.id)

        assert sent.reply_to_message is not None
        assert sent.reply_to_message.text == "Where?"
        assert at.chat.messages[-1].reply_to == asked


async def test_a_reply_to_a_deleted_message_is_refused() -> None:
    async with scene() as at:
        asked = await at.anna.say(at.chat, "Where?")
        await at.anna.delete(asked)

        with pytest.raises(BadRequest) as caught:
            await at.bot.send_message(at.chat.id, "There", reply_to_message_id=asked.id)

    assert refusal(caught) == "Message to be replied not found"


async def test_a_reply_may_be_sent_without_a_deleted_message() -> None:
    async with scene() as at:
        reply = ReplyParameters(12345, allow_sending_without_reply=True)
        sent = await at.bot.send_message(at.chat.id, "There", reply_parameters=reply)

        assert sent.reply_to_message is None


async def test_a_message_shows_its_buttons() -> None:
    async with scene() as at:
        row = [
            InlineKeyboardButton("Yes", callback_data="y"),
            InlineKeyboardButton("More", url="https://example.org"),
        ]
        sent = await at.bot.send_message(
            at.chat.id, "Sure?", reply_markup=InlineKeyboardMarkup([row])
        )

        assert sent.reply_markup == InlineKeyboardMarkup([row])
        yes, more = Button("Yes", "y"), Button("More", url="https://example.org")
        assert at.chat.messages[-1].keyboard == ((yes, more),)


async def test_other_markups_are_accepted_and_show_nothing() -> None:
    async with scene() as at:
        sent = await at.bot.send_message(at.chat.id, "Sure?", reply_markup=ForceReply())

        assert sent.reply_markup is None


async def test_callback_data_may_have_64_bytes() -> None:
    async with scene() as at:
        await at.bot.send_message(at.chat.id, "?", reply_markup=keyboard("ü" * 32))


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        (keyboard("ü" * 32 + "a"), "Button_data_invalid"),
        (
            InlineKeyboardMarkup([[InlineKeyboardButton("?", callback_data="")]]),
            "Can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard",
        ),
        (keyboard(*"x" * 101), "Reply markup is too long"),
    ],
)
async def test_buttons_that_telegram_would_not_show_are_refused(
    markup: InlineKeyboardMarkup, expected: str
) -> None:
    async with scene() as at:
        with pytest.raises(BadRequest) as caught:
            await at.bot.send_message(at.chat.id, "?", reply_markup=markup)

    assert refusal(caught).lower() == expected.lower()


@pytest.mark.parametrize(
    "markup",
    ["[]", "{", '{"inline_keyboard": 1}', '{"inline_keyboard": [1]}', '{"inline_keyboard": [[1]]}'],
)
async def test_an_invalid_keyboard_is_refused(markup: str) -> None:
    async with scene() as at, raw_client(at.server) as client:
        given = {"chat_id": at.chat.id, "text": "hello", "reply_markup": markup}
        answer = await client.post("sendMessage", data=given)

    assert answer.json()["error_code"] == 400


async def test_an_edit_changes_text_and_buttons() -> None:
    async with scene() as at:
        sent = await at.bot.send_message(at.chat.id, "Sure?", reply_markup=keyboard("yes"))
        edited = await sent.edit_text("Done.")

        assert isinstance(edited, type(sent))
        assert (edited.text, edited.reply_markup) == ("Done.", None)
        assert edited.edit_date is not None
        assert [(m.text, m.keyboard) for m in at.chat.replies] == [("Done.", ())]


async def test_an_edit_may_change_the_buttons_alone() -> None:
    async with scene() as at:
        sent = await at.bot.send_message(at.chat.id, "Sure?", reply_markup=keyboard("yes"))
        await sent.edit_reply_markup(keyboard("no"))

        assert [(m.text, m.keyboard) for m in at.chat.replies] == [
            ("Sure?", ((Button("no", "no"),),))
        ]


async def test_an_edit_without_a_change_is_refused() -> None:
    async with scene() as at:
        sent = await at.bot.send_message(at.chat.id, "Sure?")
        with pytest.raises(BadRequest) as caught:
            await sent.edit_text("Sure?")

    assert refusal(caught) == NOT_MODIFIED


async def test_only_the_bots_own_messages_can_be_edited() -> None:
    async with scene() as at:
        asked = await at.anna.say(at.chat, "Where?")
        with pytest.raises(BadRequest) as caught:
            await at.bot.edit_message_text("Here", at.chat.id, asked.id)

    assert refusal(caught) == "Message can't be edited"


async def test_a_deleted_message_cannot_be_edited() -> None:
    async with scene() as at:
        with pytest.raises(BadRequest) as caught:
            await at.bot.edit_message_text("Here", at.chat.id, 12345)

    assert refusal(caught) == "Message to edit not found"


async def test_the_text_of_a_document_cannot_be_edited() -> None:
    async with scene() as at:
        sent = await at.bot.send_document(at.chat.id, InputFile(b"{}", "export.json"))
        with pytest.raises(BadRequest) as caught:
            await sent.edit_text("Here")

    assert refusal(caught) == "There is no text in the message to edit"


async def test_the_bot_deletes_messages_of_both_sides_in_private() -> None:
    async with scene() as at:
        asked = await at.anna.say(at.chat, "Where?")
        sent = await at.bot.send_message(at.chat.id, "There")
        await at.bot.delete_message(at.chat.id, asked.id)
        await sent.delete()

        assert [message.text for message in at.chat.messages] == ["/start"]


async def test_in_a_group_the_bot_deletes_others_messages_only_as_admin() -> None:
    async with scene() as at:
        plain = at.server.group("Plain", [at.anna])
        ruled = at.server.group("Ruled", [at.anna], bot_is_admin=True)
        await at.bot.delete_message(ruled.id, (await at.anna.say(ruled, "a")).id)
        with pytest.raises(BadRequest) as caught:
            await at.bot.delete_message(plain.id, (await at.anna.say(plain, "a")).id)

    assert refusal(caught) == "Message can't be deleted"


async def test_a_message_older_than_two_days_cannot_be_deleted() -> None:
    clock = Clock()
    async with scene(BotApiServer(clock=clock)) as at:
        sent = await at.bot.send_message(at.chat.id, "There")
        clock.now += 48 * 60 * 60
        with pytest.raises(BadRequest) as caught:
            await sent.delete()

    assert refusal(caught) == "Message can't be deleted for everyone"


async def test_a_deleted_message_cannot_be_deleted_again() -> None:
    async with scene() as at:
        with pytest.raises(BadRequest) as caught:
            await at.bot.delete_message(at.chat.id, 12345)

    assert refusal(caught) == "Message to delete not found"


async def test_a_document_arrives_with_name_caption_and_content() -> None:
    async with scene() as at:
        file = InputFile(b"\x00\r\n{}\xff", "export.json")
        sent = await at.bot.send_document(at.chat.id, file, caption="All of it")

        assert sent.document is not None
        assert (sent.document.file_name, sent.caption) == ("export.json", "All of it")
        media = at.chat.messages[-1].media
        assert media is not None
        assert media.file.content == b"\x00\r\n{}\xff"
        again = await at.bot.send_document(at.chat.id, sent.document.file_id)
        assert again.document == sent.document


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("", "There is no document in the request"),
        ("https://example.org/a.pdf", "Wrong file identifier/http url specified"),
    ],
)
async def test_a_document_from_another_server_is_refused(document: str, expected: str) -> None:
    async with scene() as at:
        with pytest.raises(BadRequest) as caught:
            await at.bot.send_document(at.chat.id, document)

    assert refusal(caught).lower() == expected.lower()


async def test_a_caption_has_at_most_1024_units() -> None:
    async with scene() as at:
        with pytest.raises(BadRequest) as caught:
            await at.bot.send_document(at.chat.id, InputFile(b"a", "a"), caption="🙂" * 513)

    assert refusal(caught) == "Message caption is too long"


async def test_the_bot_fetches_what_people_send() -> None:
    async with scene() as at:
        await at.anna.send(at.chat, "voice", file=Upload(b"a voice"))
        voice = (await at.new_update()).effective_message
        assert voice is not None
        assert voice.voice is not None

        file = await voice.voice.get_file()

        assert bytes(await file.download_as_bytearray()) == b"a voice"


async def test_an_unknown_file_is_refused() -> None:
    async with scene() as at, raw_client(at.server) as client:
        with pytest.raises(BadRequest) as caught:
            await at.bot.get_file("file-0")
        answer = await client.get(f"{at.server.url}/file/bot{at.server.token}/files/file-0")

    assert refusal(caught) == "Invalid file_id"
    assert answer.status_code == 404


async def test_a_file_over_20_megabytes_cannot_be_fetched() -> None:
    async with scene() as at:
        file = Upload(b"\x00" * (20 * 2**20 + 1))
        sent = await at.anna.send(at.chat, "document", file=file)
        assert sent.media is not None
        with pytest.raises(BadRequest) as caught:
            await at.bot.get_file(sent.media.file.id)

    assert refusal(caught) == "File is too big"


async def test_typing_shows_for_five_seconds_or_until_the_message() -> None:
    clock, seen = Clock(), []
    async with scene(BotApiServer(clock=clock)) as at:
        await at.bot.send_chat_action(at.chat.id, ChatAction.TYPING)
        seen.append(at.chat.bot_is_typing)
        clock.now += 5
        seen.append(at.chat.bot_is_typing)
        await at.bot.send_chat_action(at.chat.id, ChatAction.TYPING)
        seen.append(at.chat.bot_is_typing)
        await at.bot.send_message(at.chat.id, "There")
        seen.append(at.chat.bot_is_typing)

    assert seen == [True, False, True, False]


async def test_an_unknown_action_is_refused() -> None:
    async with scene() as at:
        with pytest.raises(BadRequest) as caught:
            await at.bot.send_chat_action(at.chat.id, "dancing")

    assert refusal(caught) == "Wrong parameter action in request"


async def test_a_draft_is_visible_for_30_seconds_or_until_the_message() -> None:
    clock, seen = Clock(), []
    async with scene(BotApiServer(clock=clock)) as at:
        await at.bot.send_message_draft(at.chat.id, 7, "I am")
        seen.append(at.chat.draft and (at.chat.draft.id, at.chat.draft.content.text))
        clock.now += 30
        seen.append(at.chat.draft)
        await at.bot.send_message_draft(at.chat.id, 8, "")
        seen.append(at.chat.draft and (at.chat.draft.id, at.chat.draft.content.text))
        await at.bot.send_message(at.chat.id, "There")
        seen.append(at.chat.draft)

    assert seen == [(7, "I am"), None, (8, ""), None]


async def test_drafts_and_actions_of_a_private_chat_have_limits_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PTB_TIMEDELTA", "true")
    clock, taken = Clock(), []
    async with scene(BotApiServer(clock=clock)) as at:
        for at_s in (0, 5, 10, 30):
            clock.now = 1_800_000_000.0 + at_s
            taken.append(0)
            with suppress(RetryAfter):
                while True:
                    await at.bot.send_message_draft(at.chat.id, 7, "I am")
                    await at.bot.send_chat_action(at.chat.id, ChatAction.TYPING)
                    taken[-1] += 2

    assert taken == [20, 20, 0, 20]


async def test_a_draft_belongs_to_its_topic() -> None:
    async with scene() as at:
        topic = at.chat.add_topic("Boats", 40)
        await at.bot.send_message_draft(at.chat.id, 7, "I am", message_thread_id=topic.id)
        await at.bot.send_message(at.chat.id, "Elsewhere")
        draft = at.chat.draft_in(topic.id)
        assert (draft and draft.content.text, at.chat.draft) == ("I am", None)
        await at.bot.send_message(at.chat.id, "There", message_thread_id=topic.id)
        assert at.chat.draft_in(topic.id) is None


@pytest.mark.parametrize("keep", [False, True])
async def test_stop_under_a_draft_can_be_pressed_once(*, keep: bool) -> None:
    async with scene() as at:
        await at.bot.get_updates(allowed_updates=["message", "stopped_message_generation"])
        topic = at.chat.add_topic("Boats", 40)
        stoppable = {"can_stop": True, "keep_on_stop": keep}
        for thread_id in (None, topic.id):
            await at.bot.send_message_draft(
                at.chat.id, 7, "I am", message_thread_id=thread_id, api_kwargs=stoppable
            )

        await at.anna.stop(at.chat, topic)
        await at.anna.stop(at.chat)

        inside, outside = (update.body for update in at.server.updates.history[-2:])
        assert (inside["draft_id"], inside["message_thread_id"]) == (7, 40)
        assert outside == {
            "chat": {"id": 1, "first_name": "Anna", "last_name": "Berg", "type": "private"},
            "draft_id": 7,
        }
        assert (at.chat.draft is not None) is keep
        with pytest.raises(ValueError, match="can be stopped"):
            await at.anna.stop(at.chat)


async def test_only_a_draft_with_a_stop_button_can_be_stopped() -> None:
    async with scene() as at:
        await at.bot.send_message_draft(at.chat.id, 7, "I am")
        with pytest.raises(ValueError, match="can be stopped"):
            await at.anna.stop(at.chat)


async def test_a_bot_that_did_not_ask_for_stops_gets_none() -> None:
    async with scene() as at:
        before = len(at.server.updates.history)
        await at.bot.send_message_draft(at.chat.id, 7, "I am", api_kwargs={"can_stop": True})
        await at.anna.stop(at.chat)

        assert (len(at.server.updates.history), at.chat.draft) == (before, None)


async def test_a_draft_needs_an_id_and_a_private_chat() -> None:
    async with scene() as at:
        group = at.server.group("Friends", [at.anna])
        with pytest.raises(BadRequest) as no_id:
            await at.bot.send_message_draft(at.chat.id, 0, "I am")
        with pytest.raises(BadRequest) as no_private_chat:
            await at.bot.send_message_draft(group.id, 7, "I am")

    assert refusal(no_id).upper() == "RANDOM_ID_INVALID"
    assert refusal(no_private_chat).upper() == "TEXTDRAFT_PEER_INVALID"


async def test_a_pressed_button_is_answered_once() -> None:
    async with scene() as at:
        await at.bot.send_message(at.chat.id, "Sure?", reply_markup=keyboard("yes"))
        press = await at.anna.press(at.chat.messages[-1], "yes")
        query = (await at.new_update()).callback_query
        assert query is not None
        assert (query.data, query.from_user.id) == ("yes", 1)
        assert query.message is not None
        assert query.message.message_id == press.message.id

        await query.answer("Done", show_alert=True)

        assert (press.answer, press.is_alert) == ("Done", True)
        with pytest.raises(BadRequest) as caught:
            await query.answer()
        assert refusal(caught).lower() == QUERY_TOO_OLD.lower()


async def test_a_long_answer_to_a_button_is_refused() -> None:
    async with scene() as at:
        await at.bot.send_message(at.chat.id, "Sure?", reply_markup=keyboard("yes"))
        press = await at.anna.press(at.chat.messages[-1], "yes")
        with pytest.raises(BadRequest):
            await at.bot.answer_callback_query(press.id, "a" * 201)


async def test_a_call_without_a_chat_is_refused() -> None:
    async with scene() as at:
        with pytest.raises(BadRequest) as caught:
            await at.bot.send_message("", "hello")

    assert refusal(caught) == "Chat_id is empty"
