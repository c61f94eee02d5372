import pytest
from telegram import (
    ChatMemberAdministrator,
    ChatMemberBanned,
    ChatMemberLeft,
    ChatMemberMember,
    ChatMemberOwner,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    Message,
    MessageEntity,
)
from telegram.constants import ZERO_DATE, ChatType
from telegram.error import BadRequest, ChatMigrated, Forbidden

from tests.servers.bot_api import BotApiServer, Chat, Entity, Upload
from tests.servers.bot_api_client import Scene, refusal, scene


async def newest(at: Scene) -> Message:
    message = (await at.new_update()).effective_message
    assert message is not None
    return message


async def test_a_message_shows_who_wrote_it_where_and_when() -> None:
    async with scene(BotApiServer(clock=lambda: 1_800_000_000.9)) as at:
        said = await at.anna.say(at.chat, "hello")
        message = await newest(at)

        assert message.message_id == said.id
        assert message.text == "hello"
        assert message.date.timestamp() == 1_800_000_000
        assert message.chat.type == ChatType.PRIVATE
        assert (message.chat.id, message.chat.first_name) == (1, "Anna")
        assert message.from_user is not None
        assert message.from_user.full_name == "Anna Berg"
        assert message.from_user.language_code == "de"


async def test_mentions_and_commands_are_found_in_utf16_units() -> None:
    async with scene() as at:
        await at.anna.say(at.chat, "🙂 /help@ricordo_bot and @ricordo_bot, a@b.example /no/path")
        message = await newest(at)

        assert list(message.entities) == [
            MessageEntity("bot_command", 3, 17),
            MessageEntity("mention", 25, 12),
        ]


async def test_entities_can_be_given_instead() -> None:
    async with scene() as at:
        await at.anna.say(at.chat, "/help", entities=[Entity("code", 0, 5)])

        assert list((await newest(at)).entities) == [MessageEntity("code", 0, 5)]


async def test_a_reply_shows_one_level_of_replies() -> None:
    async with scene() as at:
        first = await at.anna.say(at.chat, "one")
        second = await at.anna.say(at.chat, "two", reply_to=first)
        await at.anna.say(at.chat, "three", reply_to=second)
        message = await newest(at)

        assert message.reply_to_message is not None
        assert message.reply_to_message.text == "two"
        assert message.reply_to_message.reply_to_message is None


async def test_a_sent_file_has_its_kind_and_caption() -> None:
    async with scene() as at:
        await at.anna.send(at.chat, "photo", caption="/ask what is this?")
        photo = await newest(at)
        assert photo.photo
        assert photo.caption == "/ask what is this?"
        assert list(photo.caption_entities) == [MessageEntity("bot_command", 0, 4)]

        await at.anna.send(at.chat, "sticker", reply_to=at.chat.messages[-1])
        assert (await newest(at)).sticker

        file = Upload(b"%PDF", "plan.pdf", "application/pdf")
        await at.anna.send(at.chat, "document", file=file)
        document = (await newest(at)).document
        assert document is not None
        assert (document.file_name, document.mime_type) == ("plan.pdf", "application/pdf")


async def test_an_edit_is_an_update_of_its_own() -> None:
    async with scene() as at:
        said = await at.anna.say(at.chat, "on Monday")
        edited = await at.anna.edit(said, "on Tuesday")
        update = await at.new_update()

        assert update.message is None
        assert update.edited_message is not None
        assert update.edited_message.message_id == said.id
        assert update.edited_message.text == "on Tuesday"
        assert at.chat.messages[-1] == edited


async def test_a_deleted_message_is_gone_and_the_bot_gets_no_update() -> None:
    async with scene() as at:
        said = await at.anna.say(at.chat, "oops")
        before = len(at.server.updates.history)
        await at.anna.delete(said)

        assert said not in at.chat.messages
        assert len(at.server.updates.history) == before
        with pytest.raises(ValueError, match="deleted"):
            await at.anna.edit(said, "better")


async def test_a_button_can_be_pressed_while_its_message_is_being_deleted() -> None:
    async with scene() as at:
        keyboard = InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="y")]])
        sent = await at.bot.send_message(at.chat.id, "Sure?", reply_markup=keyboard)
        seen = at.chat.messages[-1]
        await sent.delete()
        await at.anna.press(seen, "Yes")
        query = (await at.new_update()).callback_query

        assert query is not None
        assert query.message is not None
        assert (query.message.message_id, query.message.date) == (seen.id, ZERO_DATE)


async def test_an_unknown_button_cannot_be_pressed() -> None:
    async with scene() as at:
        seen = await at.sent("no buttons")
        with pytest.raises(ValueError, match="no button 'Yes'"):
            await at.anna.press(seen, "Yes")


async def test_the_bot_must_be_written_to_first() -> None:
    async with scene() as at:
        chat = at.server.private_chat(at.server.user(2, "Bert"))
        with pytest.raises(Forbidden) as caught:
            await at.bot.send_message(chat.id, "hello?")

    assert refusal(caught) == "Forbidden: bot can't initiate conversation with a user"


async def test_a_person_who_blocked_the_bot_gets_nothing_until_writing_again() -> None:
    async with scene() as at:
        await at.anna.block()
        change = (await at.new_update()).my_chat_member
        assert change is not None
        assert isinstance(change.new_chat_member, ChatMemberBanned)
        with pytest.raises(Forbidden) as caught:
            await at.bot.send_message(at.chat.id, "hello?")
        assert refusal(caught) == "Forbidden: bot was blocked by the user"

        await at.anna.say(at.chat, "I am back")
        update = (await at.updates(offset=-2))[0]
        assert update.my_chat_member is not None
        assert isinstance(update.my_chat_member.new_chat_member, ChatMemberMember)
        await at.bot.send_message(at.chat.id, "Welcome back")


def friends(at: Scene, *, forum: bool = False, basic: bool = False) -> Chat:
    """Return a group that Anna made."""
    bert = at.server.user(2, "Bert")
    return at.server.group("Friends", [bert], [at.anna], forum=forum, basic=basic)


async def test_a_group_shows_its_kind_and_title() -> None:
    async with scene() as at:
        for basic, kind in ((False, ChatType.SUPERGROUP), (True, ChatType.GROUP)):
            group = friends(at, basic=basic)
            await at.anna.say(group, "hello")
            chat = (await newest(at)).chat

            assert (chat.id, chat.type, chat.title) == (group.id, kind, "Friends")
            assert chat.id < 0


async def test_privacy_mode_hides_messages_that_are_not_for_the_bot() -> None:
    async with scene(BotApiServer(privacy_mode=True)) as at:
        group = friends(at)
        await at.bot.send_message(group.id, "I am here")
        for text in ("hello", "@ricordo_bot hello", "/help@other_bot"):
            await at.anna.say(group, text)
        assert await at.updates() == ()

        for text in ("/help", "well, /help@ricordo_bot"):
            await at.anna.say(group, text)
        await at.anna.say(group, "thanks", reply_to=group.replies[-1])
        await at.anna.send(group, "photo", caption="/ask what is this?")

        assert len(await at.updates()) == 4
        assert len(group.messages) == 8


async def test_privacy_mode_does_not_hide_messages_from_an_admin_bot() -> None:
    async with scene(BotApiServer(privacy_mode=True)) as at:
        group = at.server.group("Friends", [at.anna], bot_is_admin=True)
        await at.anna.say(group, "hello")

        assert len(await at.updates()) == 1


async def test_another_bot_writes_like_a_person_and_is_marked_as_a_bot() -> None:
    async with scene() as at:
        other = at.server.user(3, "Weather", username="weather_bot", is_bot=True)
        group = at.server.group("Friends", [at.anna, other])
        await other.say(group, "Rain at ten")
        sender = (await newest(at)).from_user

        assert sender is not None
        assert (sender.id, sender.is_bot) == (3, True)


async def test_an_anonymous_admin_speaks_as_the_group() -> None:
    async with scene() as at:
        group = friends(at)
        await at.anna.say(group, "from the board", speaking_as=group)
        message = await newest(at)

        assert message.from_user is not None
        assert message.from_user.username == "GroupAnonymousBot"
        assert message.sender_chat == message.chat


async def test_a_channel_speaks_in_a_group() -> None:
    async with scene() as at:
        channel = at.server.channel("News", [at.anna])
        await at.anna.say(friends(at), "breaking", speaking_as=channel)
        message = await newest(at)

        assert message.from_user is not None
        assert message.from_user.username == "Channel_Bot"
        assert message.sender_chat is not None
        assert message.sender_chat.id == channel.id


async def test_posts_and_edits_in_a_channel_are_updates_of_their_own() -> None:
    async with scene() as at:
        channel = at.server.channel("News", [at.anna])
        post = await at.anna.say(channel, "breaking")
        update = await at.new_update()
        assert update.channel_post is not None
        assert update.channel_post.from_user is None

        await at.anna.edit(post, "not so breaking")
        assert (await at.new_update()).edited_channel_post is not None


async def test_strangers_cannot_speak_in_a_group() -> None:
    async with scene() as at:
        with pytest.raises(ValueError, match="is not in"):
            await at.server.user(9, "Eve").say(friends(at), "hello")


async def test_a_topic_message_carries_its_thread_and_replies_to_its_start() -> None:
    async with scene() as at:
        forum = friends(at, forum=True)
        trips = forum.topic("Trips")
        await at.anna.say(forum, "Where to?", topic=trips)
        message = await newest(at)

        assert message.chat.is_forum is True
        assert message.is_topic_message is True
        assert message.message_thread_id == trips.id
        assert message.reply_to_message is not None
        assert message.reply_to_message.forum_topic_created is not None
        assert message.reply_to_message.forum_topic_created.name == "Trips"


async def test_messages_in_general_have_no_thread_id() -> None:
    async with scene() as at:
        await at.anna.say(friends(at, forum=True), "Where to?")
        message = await newest(at)

        assert message.message_thread_id is None
        assert message.is_topic_message is None


async def test_a_reply_stays_in_its_topic() -> None:
    async with scene() as at:
        forum = friends(at, forum=True)
        trips = forum.topic("Trips")
        asked = await at.anna.say(forum, "Where to?", topic=trips)
        await at.anna.say(forum, "Anyone?", reply_to=asked)
        assert (await newest(at)).message_thread_id == trips.id

        sent = await at.bot.send_message(forum.id, "Rome", reply_to_message_id=asked.id)
        assert sent.message_thread_id == trips.id


async def test_the_bot_answers_in_a_topic() -> None:
    async with scene() as at:
        forum = friends(at, forum=True)
        trips, food = forum.topic("Trips"), forum.topic("Food")
        await at.bot.send_message(forum.id, "Rome", message_thread_id=trips.id)
        await at.bot.send_message(forum.id, "Pizza", message_thread_id=food.id)

        assert (await forum.wait_for_reply(topic=food)).text == "Pizza"
        assert (await forum.wait_for_reply(topic=trips)).text == "Rome"


@pytest.mark.parametrize("thread", [1, 12345])
async def test_an_unknown_topic_is_refused_and_so_is_general(thread: int) -> None:
    async with scene() as at:
        forum = friends(at, forum=True)
        with pytest.raises(BadRequest) as caught:
            await at.bot.send_message(forum.id, "hello", message_thread_id=thread)

    assert refusal(caught) == "Message thread not found"


async def test_typing_is_accepted_in_general() -> None:
    async with scene() as at:
        forum = friends(at, forum=True)
        assert await at.bot.send_chat_action(forum.id, "typing", message_thread_id=1)


async def test_a_group_without_topics_ignores_a_thread_id() -> None:
    async with scene() as at:
        sent = await at.bot.send_message(friends(at).id, "hello", message_thread_id=12345)

        assert sent.message_thread_id is None


async def test_a_group_without_topics_cannot_get_a_topic() -> None:
    async with scene() as at:
        with pytest.raises(ValueError, match="not a forum"):
            friends(at).topic("Trips")


async def test_replies_in_a_supergroup_have_a_thread_without_a_topic() -> None:
    async with scene() as at:
        group = friends(at)
        first = await at.anna.say(group, "one")
        second = await at.anna.say(group, "two", reply_to=first)
        await at.anna.say(group, "three", reply_to=second)
        message = await newest(at)

        assert message.message_thread_id == first.id
        assert message.is_topic_message is None


async def test_a_migration_is_announced_in_both_chats() -> None:
    async with scene() as at:
        group = friends(at, basic=True)
        supergroup = await at.anna.migrate(group)
        gone, come = (update.message for update in await at.updates())

        assert gone is not None
        assert (gone.chat.id, gone.migrate_to_chat_id) == (group.id, supergroup.id)
        assert come is not None
        assert (come.chat.id, come.migrate_from_chat_id) == (supergroup.id, group.id)
        with pytest.raises(ChatMigrated) as caught:
            await at.bot.send_message(group.id, "hello")
        assert caught.value.new_chat_id == supergroup.id
        await at.bot.send_message(supergroup.id, "hello")
        await at.anna.say(supergroup, "hello")
        with pytest.raises(ValueError, match="no basic group"):
            await at.anna.migrate(supergroup)


async def test_a_kicked_bot_gets_no_messages_and_cannot_send() -> None:
    async with scene() as at:
        group = friends(at)
        await at.anna.kick_bot(group)
        await at.anna.say(group, "finally alone")

        assert (await at.new_update()).my_chat_member is not None
        with pytest.raises(Forbidden) as caught:
            await at.bot.send_message(group.id, "hello?")
        assert refusal(caught) == "Forbidden: bot was kicked from the supergroup chat"


async def test_the_bot_gets_the_admins_of_a_group() -> None:
    async with scene() as at:
        other = at.server.user(3, "Weather", is_bot=True)
        bert, carla = at.server.user(2, "Bert"), at.server.user(4, "Carla")
        group = at.server.group("Friends", [bert], [at.anna, carla, other], bot_is_admin=True)

        owner = await at.bot.get_chat_member(group.id, at.anna.id)
        assert isinstance(owner, ChatMemberOwner)
        assert isinstance(await at.bot.get_chat_member(group.id, 4), ChatMemberAdministrator)
        assert isinstance(await at.bot.get_chat_member(group.id, 2), ChatMemberMember)
        at.server.user(5, "Dora")
        assert isinstance(await at.bot.get_chat_member(group.id, 5), ChatMemberLeft)
        admins = await at.bot.get_chat_administrators(group.id)
        assert {admin.user.id for admin in admins} == {1, 4, at.server.bot.id}


@pytest.mark.parametrize(
    ("user_id", "expected"), [(404, "User not found"), (0, "Invalid user_id specified")]
)
async def test_asking_for_user_zero_is_refused(user_id: int, expected: str) -> None:
    async with scene() as at:
        with pytest.raises(BadRequest) as caught:
            await at.bot.get_chat_member(at.chat.id, user_id)

    assert refusal(caught) == expected


async def test_a_private_chat_has_no_admins() -> None:
    async with scene() as at:
        with pytest.raises(BadRequest) as caught:
            await at.bot.get_chat_administrators(at.chat.id)

    assert refusal(caught) == "There are no administrators in the private chat"


async def test_the_bot_can_describe_a_chat() -> None:
    async with scene() as at:
        assert (await at.bot.get_chat(at.chat.id)).first_name == "Anna"
        forum = friends(at, forum=True)
        described = await at.bot.get_chat(forum.id)
        assert (described.title, described.is_forum) == ("Friends", True)


async def test_a_missing_reply_raises_an_error_with_the_chat_so_far() -> None:
    async with scene() as at:
        await at.sent("an old answer")
        await at.anna.say(at.chat, "anyone?")
        with pytest.raises(TimeoutError, match=r"Ricordo: an old answer\nAnna: anyone\?"):
            await at.chat.wait_for_reply(timeout_s=0.01)


async def test_a_reply_after_a_given_message_is_the_first_one() -> None:
    async with scene() as at:
        asked = await at.anna.say(at.chat, "two things?")
        await at.sent("one")
        await at.sent("two")

        assert (await at.chat.wait_for_reply()).text == "one"
        one = await at.chat.wait_for_reply(asked)
        assert (await at.chat.wait_for_reply(one)).text == "two"


async def test_ids_are_higher_than_those_of_an_earlier_server() -> None:
    async with scene(BotApiServer(clock=lambda: 1_800_000_000.0)) as at:
        earlier_update, earlier_message = at.server.updates.history[-1].id, at.chat.messages[-1].id
    async with scene(BotApiServer(clock=lambda: 1_800_000_060.0)) as at:
        assert at.server.updates.history[0].id > earlier_update
        assert at.chat.messages[0].id > earlier_message
