"""What the bot does besides sending text: quote, react, delete, copy, leave, name topics."""

import pytest
from telegram import MessageEntity, ReplyParameters
from telegram.error import BadRequest, EndPointNotFound, Forbidden

from tests.servers.bot_api import BotApiServer, Entity, Refuse, contents
from tests.servers.bot_api_client import Scene, raw_client, refusal, scene


async def rich(at: Scene, **message: object) -> dict[str, object]:
    """Let the bot send Anna a rich message."""
    sent = await at.bot.do_api_request(
        "sendRichMessage", api_kwargs={"chat_id": at.chat.id, "rich_message": message}
    )
    assert isinstance(sent, dict)
    return sent


async def test_the_bot_quotes_an_exact_part_with_its_entities() -> None:
    async with scene() as at:
        asked = await at.anna.say(at.chat, "the boat", entities=[Entity("bold", 4, 4)])
        wrong_quotes = [("boats", None), ("boat", None), ("the", [MessageEntity("bold", 0, 3)])]
        for text, entities in wrong_quotes:
            wrong = ReplyParameters(asked.id, quote=text, quote_entities=entities)
            with pytest.raises(BadRequest) as caught:
                await at.bot.send_message(at.chat.id, "It is sold", reply_parameters=wrong)
            assert refusal(caught).upper() == "QUOTE_TEXT_INVALID"

        bold = [MessageEntity("bold", 0, 4)]
        right = ReplyParameters(asked.id, quote="boat", quote_entities=bold)
        sent = await at.bot.send_message(at.chat.id, "It is sold", reply_parameters=right)

        assert sent.quote is not None
        assert (sent.quote.text, sent.quote.position) == ("boat", 4)
        assert [message.text for message in at.chat.replies] == ["It is sold"]


async def test_a_reply_to_another_chat_is_never_sent_without_it() -> None:
    async with scene() as at:
        elsewhere = ReplyParameters(12345, chat_id=404, allow_sending_without_reply=True)
        with pytest.raises(BadRequest) as caught:
            await at.bot.send_message(at.chat.id, "There", reply_parameters=elsewhere)

    assert refusal(caught) == "Message to be replied not found"


async def test_the_bot_has_one_reaction_from_a_fixed_list() -> None:
    async with scene() as at:
        said = await at.anna.say(at.chat, "hello")
        await at.bot.set_message_reaction(at.chat.id, said.id, "✍")
        await at.bot.set_message_reaction(at.chat.id, said.id, "👌")
        assert at.chat.reaction(said, at.server.bot) == ("👌",)
        for emoji, expected in ((["✅"], "REACTION_INVALID"), (["👍", "👎"], "REACTIONS_TOO_MANY")):
            with pytest.raises(BadRequest) as caught:
                await at.bot.set_message_reaction(at.chat.id, said.id, emoji)
            assert refusal(caught).upper() == expected

        await at.bot.set_message_reaction(at.chat.id, said.id, [])

        assert at.chat.reaction(said, at.server.bot) == ()
        with pytest.raises(BadRequest):
            await at.bot.set_message_reaction(at.chat.id, 12345, "👌")


async def test_a_group_may_allow_only_some_reactions() -> None:
    async with scene() as at:
        group = at.server.group("Friends", [at.anna])
        said = await at.anna.say(group, "hello")
        assert (await at.bot.get_chat(group.id)).available_reactions == ()

        group.available_reactions = ["👍"]

        allowed = (await at.bot.get_chat(group.id)).available_reactions
        assert [each.to_dict() for each in allowed or ()] == [{"type": "emoji", "emoji": "👍"}]
        await at.bot.set_message_reaction(group.id, said.id, "👍")
        with pytest.raises(BadRequest) as caught:
            await at.bot.set_message_reaction(group.id, said.id, "👌")
        assert refusal(caught).upper() == "REACTION_INVALID"


async def test_the_bot_sees_reactions_that_it_asked_for_in_private_and_as_admin() -> None:
    async with scene() as at:
        plain = at.server.group("Plain", [at.anna])
        ruled = at.server.group("Ruled", [at.anna], bot_is_admin=True)
        messages = [await at.anna.say(chat, "hello") for chat in (at.chat, plain, ruled)]
        for asked in (["message"], ["message_reaction"]):
            await at.bot.get_updates(allowed_updates=asked)
            for message in messages:
                await at.anna.react(message, "👍")
        await at.anna.react(messages[0])
        reactions = [update.message_reaction for update in await at.updates(offset=-3)]

        assert [each and each.chat.id for each in reactions] == [at.chat.id, ruled.id, at.chat.id]
        newest = at.server.updates.history[-1].body
        assert newest["old_reaction"] == [{"type": "emoji", "emoji": "👍"}]
        assert newest["new_reaction"] == []


async def test_several_messages_are_deleted_at_once_and_missing_ones_skipped() -> None:
    async with scene() as at:
        said = await at.anna.say(at.chat, "hello")
        sent = await at.sent("Hello.")
        await at.bot.delete_messages(at.chat.id, [said.id, sent.id, 12345])

        assert [message.text for message in at.chat.messages] == ["/start"]
        for count in (0, 101):
            with pytest.raises(BadRequest):
                await at.bot.delete_messages(at.chat.id, list(range(count)))


async def test_a_copy_has_the_content_and_no_origin() -> None:
    async with scene() as at:
        photo = await at.anna.send(at.chat, "photo", caption="The pier")
        place = await at.anna.share(at.chat, contents.location(48.1, 11.5))
        forum = at.server.group("Friends", [at.anna], forum=True)
        for message in (photo, place):
            copied = await at.bot.copy_message(forum.id, at.chat.id, message.id)
            assert copied.message_id == forum.messages[-1].id

        picture, spot = forum.replies
        assert (picture.media, picture.text, picture.origin) == (photo.media, "The pier", {})
        assert spot.further_fields["location"] == place.further_fields["location"]
        trips = forum.topic("Trips")
        with pytest.raises(BadRequest) as caught:
            await at.bot.copy_message(at.chat.id, forum.id, trips.id)
        assert refusal(caught) == "Message can't be copied"


async def test_the_bot_leaves_groups_only() -> None:
    async with scene() as at:
        group = at.server.group("Friends", [at.anna])
        await at.bot.leave_chat(group.id)
        change = (await at.new_update()).my_chat_member

        assert change is not None
        assert change.new_chat_member.status == "left"
        with pytest.raises(Forbidden) as gone:
            await at.bot.send_message(group.id, "hello?")
        assert refusal(gone) == "Forbidden: bot is not a member of the supergroup chat"
        with pytest.raises(BadRequest):
            await at.bot.leave_chat(at.chat.id)


async def test_a_topic_in_a_private_chat_may_be_named_by_telegram() -> None:
    async with scene(BotApiServer(private_topics=True)) as at:
        assert (await at.bot.get_me()).has_topics_enabled is True
        named = await at.anna.open_topic(at.chat, "Boats")
        topic = await at.anna.open_topic(at.chat, "Where do I moor…", is_name_implicit=True)
        first, second = (update.message for update in await at.updates(offset=-2))
        assert first is not None
        assert first.forum_topic_created is not None
        assert first.forum_topic_created.is_name_implicit is None
        assert second is not None
        assert second.forum_topic_created is not None
        assert (second.message_thread_id, second.is_topic_message) == (topic.id, True)
        assert second.forum_topic_created.is_name_implicit is True

        await at.bot.edit_forum_topic(at.chat.id, topic.id, name="Mooring")
        await at.anna.rename_topic(at.chat, named, "Ships")

        assert [each.name for each in at.chat.topics.values()] == ["Ships", "Mooring"]
        message = (await at.new_update()).message
        assert message is not None
        assert message.forum_topic_edited is not None
        assert message.forum_topic_edited.name == "Ships"
        assert at.chat.replies == []
        for name, expected in (("Mooring", "TOPIC_NOT_MODIFIED"), (" ", "TOPIC_TITLE_EMPTY")):
            with pytest.raises(BadRequest) as caught:
                await at.bot.edit_forum_topic(at.chat.id, topic.id, name=name)
            assert refusal(caught).upper() == expected
        with pytest.raises(BadRequest) as unknown:
            await at.bot.edit_forum_topic(at.chat.id, 12345, name="Mooring")
        assert refusal(unknown).upper() == "TOPIC_ID_INVALID"


async def test_topics_need_a_forum_and_rights() -> None:
    async with scene() as at:
        plain = at.server.group("Plain", [at.anna], forum=True)
        ruled = at.server.group("Ruled", [at.anna], forum=True, bot_is_admin=True)
        created = await at.bot.create_forum_topic(ruled.id, "Trips")
        assert ruled.topics[created.message_thread_id].name == "Trips"

        for chat, expected in (
            (at.chat, "The chat is not a forum"),
            (plain, "Not enough rights to manage topics"),
        ):
            with pytest.raises(BadRequest) as caught:
                await at.bot.create_forum_topic(chat.id, "Trips")
            assert refusal(caught) == expected
        with pytest.raises(BadRequest):
            await at.bot.create_forum_topic(ruled.id, "n" * 129)


BOLD = {"type": "bold", "text": "boat"}
PARAGRAPH: dict[str, object] = {"type": "paragraph", "text": ["The ", BOLD]}
TABLE = {"type": "table", "cells": [[{"text": "a", "align": "left", "valign": "top"}] * 20] * 10}


async def test_a_rich_message_arrives_with_its_blocks() -> None:
    async with scene() as at, raw_client(at.server) as client:
        sent = await rich(at, blocks=[PARAGRAPH, TABLE])
        message = at.chat.replies[-1]

        assert sent["rich_message"] == {"blocks": [PARAGRAPH, TABLE]}
        assert (message.id, message.text) == (sent["message_id"], "")
        assert (await rich(at, html="<b>boat</b>"))["rich_message"]

        edit = {"chat_id": 1, "message_id": message.id, "rich_message": {"blocks": [PARAGRAPH]}}
        edited = (await client.post("editMessageText", json=edit)).json()["result"]
        assert edited["rich_message"] == {"blocks": [PARAGRAPH]}


def nested(depth: int) -> dict[str, object]:
    """Return a paragraph inside so many block quotations."""
    block: dict[str, object] = PARAGRAPH
    for _ in range(depth):
        block = {"type": "blockquote", "blocks": [block]}
    return block


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"is_rtl": True}, "exactly one of html, markdown and blocks"),
        ({"html": "a", "markdown": "a"}, "exactly one of html, markdown and blocks"),
        ({"html": "a" * 32_769}, "rich_message_too_long"),
        ({"blocks": [{"type": "pre", "text": ["a" * 32_000, "b" * 769]}]}, "rich_message_too_long"),
        ({"blocks": [{"type": "divider"}] * 501}, "rich_message_too_many_blocks"),
        ({"blocks": [{"type": "list", "items": [{"blocks": []}] * 500}]}, "too_many_blocks"),
        ({"blocks": [{"type": "table", "cells": [[{}] * 21]}]}, "rich_message_too_many_columns"),
        ({"blocks": [{"type": "photo"}] * 51}, "rich_message_too_many_media"),
        ({"blocks": [nested(16)]}, "rich_message_too_deep"),
        ({"blocks": [{"type": "thinking", "text": "…"}]}, "unsupported rich block type thinking"),
        ({"blocks": [{"type": "paragraph", "text": 1}]}, "expected a richtext"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
async def test_a_rich_message_over_a_limit_is_refused(
    message: dict[str, object], expected: str
) -> None:
    async with scene() as at:
        with pytest.raises(BadRequest) as caught:
            await rich(at, **message)

    assert expected in refusal(caught).lower()


async def test_a_server_may_not_know_rich_messages() -> None:
    async with scene() as at:
        at.server.faults.add(Refuse(404, "Not Found: method not found"), method="sendRichMessage")
        with pytest.raises(EndPointNotFound):
            await rich(at, blocks=[PARAGRAPH])
