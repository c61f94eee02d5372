"""What people do in the local Telegram, and the updates that the bot gets of it."""

from typing import Any

import pytest
from telegram import Update

from tests.servers.bot_api import Chat, Entity
from tests.servers.bot_api_client import Scene, scene


def friends(at: Scene, *, forum: bool = False) -> Chat:
    """Return a group that Anna made."""
    return at.server.group("Friends", [at.server.user(2, "Bert")], [at.anna], forum=forum)


async def news(at: Scene, count: int) -> list[Any]:
    """Return the newest messages as the bot gets them; every update fits the types of the SDK."""
    updates = [update.body for update in at.server.updates.history[-count:]]
    for update in at.server.updates.history:
        assert Update.de_json({"update_id": update.id, update.kind: update.body}, at.bot)
    return updates


async def test_replies_show_one_level_as_it_is_now_and_quotes_are_exact() -> None:
    async with scene() as at:
        first = await at.anna.say(
            at.chat, "🙂 Aurora and the boat", entities=[Entity("bold", 0, 9)]
        )
        second = await at.anna.say(at.chat, "on Monday", reply_to=first)
        await at.anna.edit(second, "on Tuesday")
        await at.anna.say(at.chat, "which?", reply_to=second)
        await at.anna.say(at.chat, "who?", reply_to=first, quote="Aurora and")
        with pytest.raises(ValueError, match="is not in"):
            await at.anna.say(at.chat, "who?", reply_to=first, quote="aurora")
        which, who = await news(at, 2)
    assert which["reply_to_message"]["text"] == "on Tuesday"
    assert "reply_to_message" not in which["reply_to_message"]
    assert who["quote"] == {
        "text": "Aurora and",
        "position": 3,
        "is_manual": True,
        "entities": [{"type": "bold", "offset": 0, "length": 6}],
    }


async def test_a_reply_to_another_chat_or_topic_has_no_text_except_the_quote() -> None:
    async with scene() as at:
        forum = friends(at, forum=True)
        trips, food = forum.topic("Trips"), forum.topic("Food")
        elsewhere = await at.anna.say(forum, "Where to?", topic=trips)
        photo = await at.anna.send(at.chat, "photo", caption="The pier")
        await at.anna.say(at.chat, "Rome", reply_to=elsewhere, quote="Where")
        await at.anna.say(forum, "Pizza", reply_to=elsewhere, topic=food)
        await at.anna.say(forum, "There", reply_to=photo)
        private, topic, picture = await news(at, 3)
    assert "reply_to_message" not in private
    assert private["quote"]["text"] == "Where"
    assert private["external_reply"]["chat"]["id"] == forum.id
    assert private["external_reply"]["message_id"] == elsewhere.id
    assert "external_reply" in topic
    assert topic["message_thread_id"] == food.id
    assert picture["external_reply"]["photo"]
    assert "chat" not in picture["external_reply"]
    assert picture["external_reply"]["origin"]["type"] == "user"


async def test_reactions_are_told_if_asked_for_in_private_and_to_an_admin() -> None:
    async with scene() as at:
        plain, ruled = friends(at), at.server.group("Ruled", [at.anna], bot_is_admin=True)
        messages = [await at.anna.say(chat, "hello") for chat in (at.chat, plain, ruled)]
        for asked in (["message"], ["message_reaction"]):
            await at.bot.get_updates(allowed_updates=asked)
            for message in messages:
                await at.anna.react(message, "👍")
        await at.anna.react(messages[0])
        kinds = [update.kind for update in at.server.updates.history[-4:]]
        assert kinds == ["message", *["message_reaction"] * 3]
        private, group, gone = await news(at, 3)
    assert [each["chat"]["id"] for each in (private, group, gone)] == [1, ruled.id, 1]
    thumb = [{"type": "emoji", "emoji": "👍"}]
    assert (gone["old_reaction"], gone["new_reaction"]) == (thumb, [])


async def test_bots_channels_and_anonymous_admins_are_marked() -> None:
    async with scene() as at:
        group, channel = friends(at), at.server.channel("News", [at.anna])
        other = at.server.user(3, "Weather", username="weather_bot", is_bot=True)
        await other.say(at.server.group("Weather", [at.anna, other]), "Rain at ten")
        await at.anna.say(group, "from the board", speaking_as=group)
        await at.anna.say(group, "breaking", speaking_as=channel)
        post = await at.anna.say(channel, "breaking")
        await at.anna.edit(post, "not so breaking")
        bot, board, news_, post_, edited = await news(at, 5)
        kinds = [update.kind for update in at.server.updates.history[-2:]]
        with pytest.raises(ValueError, match="is not in"):
            await at.server.user(9, "Eve").say(group, "hello")
    assert (bot["from"]["id"], bot["from"]["is_bot"]) == (3, True)
    assert board["from"]["username"] == "GroupAnonymousBot"
    assert board["sender_chat"] == board["chat"]
    assert news_["from"]["username"] == "Channel_Bot"
    assert news_["sender_chat"]["id"] == channel.id
    assert ("from" in post_, "edit_date" in edited) == (False, True)
    assert kinds == ["channel_post", "edited_channel_post"]
