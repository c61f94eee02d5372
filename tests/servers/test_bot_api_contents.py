"""What people send besides plain words: replies, quotes, forwards, places, albums, edits."""

import pytest
from telegram import Message, MessageOriginUser

from tests.servers.bot_api import BotApiServer, Entity, contents
from tests.servers.bot_api_client import Scene, scene


async def news(at: Scene, count: int = 1) -> list[Message]:
    """Return the newest messages or edits, oldest first."""
    messages = [update.effective_message for update in await at.updates(offset=-count)]
    assert None not in messages
    return [message for message in messages if message]


async def test_a_reply_shows_its_message_as_it_is_now_also_an_old_one() -> None:
    async with scene() as at:
        said = await at.anna.say(at.chat, "on Monday")
        await at.anna.edit(said, "on Tuesday")
        await at.anna.say(at.chat, "which day?", reply_to=said)
        replied = (await news(at))[0].reply_to_message

        assert replied is not None
        assert (replied.message_id, replied.text) == (said.id, "on Tuesday")


async def test_a_quote_is_an_exact_part_of_the_message_with_its_entities() -> None:
    async with scene() as at:
        bold = Entity("bold", 0, 9)
        said = await at.anna.say(at.chat, "🙂 Aurora and the boat", entities=[bold])
        await at.anna.say(at.chat, "who?", reply_to=said, quote="Aurora and")
        await at.anna.say(at.chat, "who?", reply_to=said, quote="boat", is_manual=False)
        chosen, added = (message.quote for message in await news(at, 2))

        assert chosen is not None
        assert (chosen.text, chosen.position, chosen.is_manual) == ("Aurora and", 3, True)
        assert chosen.entities is not None
        assert [(e.type, e.offset, e.length) for e in chosen.entities] == [("bold", 0, 6)]
        assert added is not None
        assert (added.text, added.is_manual) == ("boat", None)
        with pytest.raises(ValueError, match="is not in"):
            await at.anna.say(at.chat, "who?", reply_to=said, quote="aurora")


async def test_a_reply_to_another_chat_or_topic_has_no_text_except_the_quote() -> None:
    async with scene() as at:
        forum = at.server.group("Friends", [at.anna], forum=True)
        trips, food = forum.topic("Trips"), forum.topic("Food")
        elsewhere = await at.anna.say(forum, "Where to?", topic=trips)
        photo = await at.anna.send(at.chat, "photo", caption="The pier")
        await at.anna.say(at.chat, "Rome", reply_to=elsewhere, quote="Where")
        await at.anna.say(forum, "Pizza", reply_to=elsewhere, topic=food)
        await at.anna.say(forum, "There", reply_to=photo)
        private, topic, picture = await news(at, 3)

        assert private.reply_to_message is None
        assert private.quote is not None
        assert private.quote.text == "Where"
        assert private.external_reply is not None
        assert private.external_reply.chat is not None
        assert private.external_reply.chat.id == forum.id
        assert private.external_reply.message_id == elsewhere.id
        assert topic.external_reply is not None
        assert topic.message_thread_id == food.id
        assert picture.external_reply is not None
        assert picture.external_reply.photo
        assert picture.external_reply.chat is None
        assert isinstance(picture.external_reply.origin, MessageOriginUser)


async def test_forwards_arrive_one_by_one_after_their_comment() -> None:
    async with scene(BotApiServer(clock=lambda: 1_800_000_000.0)) as at:
        said = await at.anna.say(at.chat, "The boat is sold")
        sent = await at.sent("Noted.")
        group = at.server.group("Friends", [at.anna])
        await at.anna.forward(group, [said, sent], comment="Look!")
        comment, *forwards = await news(at, 3)

        assert (comment.text, comment.forward_origin) == ("Look!", None)
        assert [message.text for message in forwards] == ["The boat is sold", "Noted."]
        origins = [message.forward_origin for message in forwards]
        writers = [o.sender_user.id for o in origins if isinstance(o, MessageOriginUser)]
        assert writers == [at.anna.id, at.server.bot.id]
        await at.anna.forward(at.chat, [group.messages[-1]])
        assert (await news(at))[0].forward_origin == origins[-1]


async def test_a_forward_has_one_of_four_origins() -> None:
    async with scene() as at:
        bert = at.server.user(2, "Bert")
        group, channel = at.server.group("Friends", [bert]), at.server.channel("News")
        for origin in (
            contents.from_user(bert.user, 1_700_000_000),
            contents.from_hidden_user("Carla", 1_700_000_000),
            contents.from_chat(group, 1_700_000_000),
            contents.from_channel(channel, 12, 1_700_000_000, "The editor"),
        ):
            await at.anna.forward(at.chat, ["The boat is sold"], origin=origin)
            forwarded = (await news(at))[0].forward_origin
            assert forwarded is not None
            assert forwarded.type == origin["type"]
            assert forwarded.date.timestamp() == 1_700_000_000
        with pytest.raises(ValueError, match="no origin"):
            await at.anna.forward(at.chat, ["The boat is sold"])


async def test_files_of_every_kind_arrive_with_their_caption() -> None:
    async with scene() as at:
        for kind in ("photo", "voice", "video", "video_note", "audio", "animation"):
            await at.anna.send(at.chat, kind, caption="The pier")
            message = (await news(at))[0]

            assert getattr(message, kind)
            assert message.caption == "The pier"
            assert bool(message.document) is (kind == "animation")


async def test_an_album_is_a_message_for_each_file_with_one_caption() -> None:
    async with scene() as at:
        await at.anna.send_album(at.chat, ["photo", "video"], "The pier")
        first, second = await news(at, 2)

        assert first.media_group_id == second.media_group_id is not None
        assert (first.caption, second.caption) == ("The pier", None)


async def test_places_contacts_and_polls_are_messages_without_text() -> None:
    async with scene() as at:
        await at.anna.share(at.chat, contents.location(48.1, 11.5))
        await at.anna.share(at.chat, contents.venue("Zum Anker", "Pier 4"))
        await at.anna.share(at.chat, contents.contact("Carla", "+491234"))
        await at.anna.share(at.chat, contents.poll("When?", "Monday", "Tuesday"))
        place, venue, contact, poll = await news(at, 4)

        assert place.location is not None
        assert place.location.latitude == 48.1
        assert venue.venue is not None
        assert (venue.venue.title, venue.location) == ("Zum Anker", venue.venue.location)
        assert contact.contact is not None
        assert contact.contact.first_name == "Carla"
        assert poll.poll is not None
        assert [option.text for option in poll.poll.options] == ["Monday", "Tuesday"]
        assert {message.text for message in (place, venue, contact, poll)} == {None}


async def test_a_live_location_moves_by_edits() -> None:
    async with scene() as at:
        shared = await at.anna.share(at.chat, contents.location(48.1, 11.5, live_period_s=900))
        await at.anna.move(shared, 48.2, 11.6)
        update = await at.new_update()

        assert update.edited_message is not None
        assert update.edited_message.location is not None
        assert update.edited_message.location.latitude == 48.2
        assert at.server.updates.history[-1].body["location"] == {
            "latitude": 48.2,
            "longitude": 11.6,
            "live_period": 900,
        }


async def test_a_rich_message_has_blocks_and_no_text() -> None:
    async with scene() as at:
        bold = {"type": "bold", "text": "boat"}
        await at.anna.share(at.chat, contents.rich({"type": "paragraph", "text": ["The ", bold]}))
        message = (await news(at))[0]

        assert message.text is None
        blocks = message.api_kwargs["rich_message"]["blocks"]
        assert blocks == [{"type": "paragraph", "text": ["The ", bold]}]


async def test_captions_and_unchanged_texts_can_be_edited() -> None:
    async with scene() as at:
        photo = await at.anna.send(at.chat, "photo", caption="The pier")
        said = await at.anna.say(at.chat, "hello")
        await at.anna.edit(photo, "The old pier")
        await at.anna.edit(said, "hello")
        first, second = await at.updates(offset=-2)

        assert first.edited_message is not None
        assert first.edited_message.caption == "The old pier"
        assert second.edited_message is not None
        assert second.edited_message.text == "hello"
