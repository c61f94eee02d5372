"""What people do and how the updates of it reach the bot, and the faults on the way of calls."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from telegram import Update
from telegram.error import Conflict

from tests.servers.bot_api import Chat, Entity
from tests.servers.bot_api.account import Changes
from tests.servers.bot_api_client import Scene, scene
from tests.servers.dropping import DroppingServer

CLOSED_URL = "http://127.0.0.1:9/telegram"


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


def texts(updates: Sequence[Update]) -> list[str]:
    return [update.message.text or "" for update in updates if update.message]


async def waiting_poll(at: Scene) -> "asyncio.Task[tuple[Update, ...]]":
    """Return a long poll that has reached the server."""
    before = len(at.server.calls_to("getUpdates"))
    poll = asyncio.create_task(at.bot.get_updates(timeout=50))
    await at.server.wait_for(lambda: len(at.server.calls_to("getUpdates")) > before)
    return poll


@dataclass(slots=True)
class Receiver:
    """A bot's webhook; it answers with the statuses of its script, then 200, while it is open."""

    script: list[int] = field(default_factory=list)
    received: list[Update] = field(default_factory=list)
    changes: Changes = field(default_factory=Changes)
    is_open: bool = True
    url: str = ""

    async def take(self, request: Request) -> Response:
        self.received.append(Update.de_json(await request.json()))
        await self.changes.tell()
        await self.changes.until(lambda: self.is_open)
        return Response(status_code=self.script.pop(0) if self.script else 200)

    async def has(self, *expected: str) -> None:
        """Wait until exactly these texts have come; those of several chats in any order."""
        await self.changes.until(lambda: len(self.received) >= len(expected))
        assert sorted(texts(self.received)) == sorted(expected)


@asynccontextmanager
async def receiving(*script: int, is_open: bool = True) -> AsyncIterator[Receiver]:
    receiver = Receiver(list(script), is_open=is_open)
    app = Starlette(routes=[Route("/telegram", receiver.take, methods=["POST"])])
    async with DroppingServer(app) as server:
        receiver.url = f"{server.url}/telegram"
        yield receiver


async def test_a_long_poll_is_answered_by_an_update_a_newer_poll_or_its_timeout() -> None:
    async with scene() as at:
        poll = await waiting_poll(at)
        await at.bot.delete_webhook()  # there is none, so the poll goes on
        await at.anna.say(at.chat, "at last")
        [update] = await poll
        assert texts([update]) == ["at last"]
        assert await at.bot.get_updates(offset=update.update_id + 1, timeout=1) == ()
        earlier, newer = await waiting_poll(at), await waiting_poll(at)
        with pytest.raises(Conflict, match=r"(?i)terminated by other getUpdates request"):
            await earlier
        await at.bot.set_webhook(CLOSED_URL)
        with pytest.raises(Conflict, match=r"(?i)terminated by setWebhook request"):
            await newer
        with pytest.raises(Conflict):
            await at.updates()
        await at.bot.set_webhook("")
        assert (await at.bot.get_webhook_info()).url == ""
        assert await at.updates() == ()


async def test_chats_are_posted_concurrently_and_each_in_order_until_it_is_taken() -> None:
    async with scene() as at, receiving(500, 403, is_open=False) as receiver:
        bert = at.server.user(2, "Bert")
        await at.anna.say(at.chat, "a1")
        await at.bot.set_webhook(receiver.url)
        await at.anna.say(at.chat, "a2")
        await bert.say(at.server.private_chat(bert), "b1")
        await receiver.has("a1", "b1")
        receiver.is_open = True
        await receiver.changes.tell()
        await receiver.has("a1", "b1", "a1", "b1", "a2")
        assert [text for text in texts(receiver.received) if text != "b1"] == ["a1", "a1", "a2"]
