import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from telegram import InlineKeyboardButton, InlineKeyboardMarkup, Update
from telegram.error import BadRequest

from bot.playground.bot_api.account import Changes
from bot.playground.loopback import LoopbackServer
from tests.servers.bot_api import BotApiServer, Pace
from tests.servers.bot_api_client import Scene, refusal, scene

CLOSED_URL = "http://127.0.0.1:9/telegram"
BUTTON = InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="yes")]])


@dataclass(slots=True)
class Receiver:
    """A bot's webhook; it answers with the statuses of its script, then 200, while it is open."""

    script: list[int] = field(default_factory=list)
    received: list[Update] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    changes: Changes = field(default_factory=Changes)
    is_open: bool = True
    url: str = ""

    async def take(self, request: Request) -> Response:
        update = Update.de_json(await request.json())
        self.received.append(update)
        self.headers.append(dict(request.headers))
        await self.changes.tell()
        await self.changes.until(lambda: self.is_open)
        return Response(status_code=self.script.pop(0) if self.script else 200)

    async def open(self) -> None:
        self.is_open = True
        await self.changes.tell()

    async def has(self, *texts: str) -> None:
        """Wait until exactly these texts have come, in any order; buttons count by their data."""
        await self.changes.until(lambda: len(self.received) >= len(texts), 10)
        assert sorted(self.texts()) == sorted(texts)

    def texts(self) -> list[str]:
        return [_text(update) for update in self.received]


def _text(update: Update) -> str:
    if update.callback_query:
        return update.callback_query.data or ""
    return (update.message.text if update.message else None) or ""


@asynccontextmanager
async def receiving(*script: int) -> AsyncIterator[Receiver]:
    receiver = Receiver(list(script))
    app = Starlette(routes=[Route("/telegram", receiver.take, methods=["POST"])])
    async with LoopbackServer(app) as server:
        receiver.url = f"{server.url}/telegram"
        yield receiver


async def settled(at: Scene) -> None:
    """Wait until Telegram has noted that everything was accepted."""
    await at.server.wait_for(lambda: not at.server.updates.pending_count)


async def test_updates_are_posted_as_json_with_the_secret() -> None:
    async with scene() as at, receiving() as receiver:
        await at.bot.set_webhook(receiver.url, secret_token="s3cret_-")
        await at.anna.say(at.chat, "hello")
        await receiver.has("hello")
        await settled(at)

        headers = receiver.headers[0]
        assert headers["content-type"] == "application/json"
        assert headers["x-telegram-bot-api-secret-token"] == "s3cret_-"


async def test_without_a_secret_there_is_no_such_header() -> None:
    async with scene() as at, receiving() as receiver:
        await at.bot.set_webhook(receiver.url)
        await at.anna.say(at.chat, "hello")
        await receiver.has("hello")

        assert "x-telegram-bot-api-secret-token" not in receiver.headers[0]


async def test_updates_from_before_the_webhook_are_posted_too() -> None:
    async with scene() as at, receiving() as receiver:
        await at.anna.say(at.chat, "before")
        await at.bot.set_webhook(receiver.url)
        await receiver.has("before")


async def test_pending_updates_can_be_dropped() -> None:
    async with scene() as at, receiving() as receiver:
        await at.anna.say(at.chat, "before")
        await at.bot.set_webhook(receiver.url, drop_pending_updates=True)
        await at.anna.say(at.chat, "after")
        await receiver.has("after")


async def test_a_refused_update_is_repeated_before_later_ones_of_its_chat() -> None:
    async with scene() as at, receiving(500, 403) as receiver:
        await at.bot.set_webhook(receiver.url)
        at.server.updates.hold()
        await at.anna.say(at.chat, "one")
        await at.anna.say(at.chat, "two")
        await at.server.updates.release()
        await receiver.has("one", "one", "one", "two")

        assert receiver.texts() == ["one", "one", "one", "two"]


async def test_the_last_error_and_the_pending_count_are_reported() -> None:
    pace = Pace(first_retry_s=60, longest_retry_s=60)
    async with scene(BotApiServer(pace=pace)) as at, receiving(500) as receiver:
        await at.bot.set_webhook(receiver.url, max_connections=7)
        await at.anna.say(at.chat, "one")
        await at.server.wait_for(lambda: at.server.updates.last_error)

        info = await at.bot.get_webhook_info()

        assert info.url == receiver.url
        assert (info.pending_update_count, info.max_connections) == (1, 7)
        text = "Wrong response from the webhook: 500 Internal Server Error"
        assert info.last_error_message == text
        assert info.last_error_date is not None


async def test_a_new_webhook_is_tried_at_once() -> None:
    pace = Pace(first_retry_s=60, longest_retry_s=60)
    async with scene(BotApiServer(pace=pace)) as at, receiving() as receiver:
        await at.bot.set_webhook(CLOSED_URL)
        await at.anna.say(at.chat, "one")
        error = await at.server.wait_for(lambda: at.server.updates.last_error)
        await at.bot.set_webhook(receiver.url)
        await receiver.has("one")
        await settled(at)

        assert error[1] == "Connection refused"
        assert (await at.bot.get_webhook_info()).last_error_message is None


async def test_a_webhook_that_does_not_answer_times_out() -> None:
    pace = Pace(timeout_s=0.05, first_retry_s=60, longest_retry_s=60)
    async with scene(BotApiServer(pace=pace)) as at, receiving() as receiver:
        receiver.is_open = False
        await at.bot.set_webhook(receiver.url)
        await at.anna.say(at.chat, "one")
        error = await at.server.wait_for(lambda: at.server.updates.last_error)

        assert error[1] == "Read timeout expired"


async def test_chats_are_posted_concurrently_and_each_in_order() -> None:
    async with scene() as at, receiving() as receiver:
        bert = at.server.user(2, "Bert")
        berts = at.server.private_chat(bert)
        await at.bot.set_webhook(receiver.url)
        receiver.is_open = False
        await at.anna.say(at.chat, "a1")
        await at.anna.say(at.chat, "a2")
        await bert.say(berts, "b1")
        await receiver.has("a1", "b1")

        await receiver.open()

        await receiver.has("a1", "b1", "a2")


async def test_scattered_updates_of_a_chat_do_not_wait_for_each_other() -> None:
    async with scene() as at, receiving() as receiver:
        receiver.is_open = False
        at.server.updates.scatter()
        await at.bot.set_webhook(receiver.url)
        for text in ("one", "two"):
            await at.anna.say(at.chat, text)
        await receiver.has("one", "two")
        await receiver.open()
        await settled(at)


async def test_a_pressed_button_does_not_wait_for_messages() -> None:
    async with scene() as at, receiving() as receiver:
        await at.bot.set_webhook(receiver.url)
        await at.bot.send_message(at.chat.id, "Sure?", reply_markup=BUTTON)
        receiver.is_open = False
        await at.anna.say(at.chat, "one")
        await at.anna.press(at.chat.replies[-1], "Yes")

        await receiver.has("one", "yes")


async def test_no_more_connections_are_used_than_asked_for() -> None:
    async with scene() as at, receiving() as receiver:
        await at.bot.set_webhook(receiver.url, max_connections=2)
        receiver.is_open = False
        people = [at.server.user(number, f"Person {number}") for number in range(10, 14)]
        for person in people:
            await person.say(at.server.private_chat(person), person.user.first_name)
        await receiver.changes.until(lambda: len(receiver.received) == 2, 10)
        assert at.server.updates.pending_count == 4

        await receiver.open()

        await receiver.has(*(person.user.first_name for person in people))


async def test_updates_left_by_the_webhook_can_be_polled() -> None:
    pace = Pace(first_retry_s=60, longest_retry_s=60)
    async with scene(BotApiServer(pace=pace)) as at:
        await at.bot.set_webhook(CLOSED_URL)
        await at.anna.say(at.chat, "one")
        await at.server.wait_for(lambda: at.server.updates.last_error)
        await at.bot.delete_webhook()

        assert [_text(update) for update in await at.updates()] == ["one"]
        assert (await at.bot.get_webhook_info()).url == ""


async def test_setting_the_same_webhook_again_changes_nothing() -> None:
    pace = Pace(first_retry_s=60, longest_retry_s=60)
    async with scene(BotApiServer(pace=pace)) as at:
        await at.bot.set_webhook(CLOSED_URL, allowed_updates=["message"])
        await at.anna.say(at.chat, "one")
        await at.server.wait_for(lambda: at.server.updates.last_error)
        await at.bot.set_webhook(CLOSED_URL)

        info = await at.bot.get_webhook_info()
        assert info.last_error_message == "Connection refused"
        assert info.allowed_updates == ("message",)


async def test_an_empty_url_removes_the_webhook() -> None:
    async with scene() as at:
        await at.bot.set_webhook(CLOSED_URL)
        await at.bot.set_webhook("")

        assert (await at.bot.get_webhook_info()).url == ""


async def test_an_update_can_be_posted_again_and_out_of_order() -> None:
    async with scene() as at, receiving() as receiver:
        await at.bot.set_webhook(receiver.url)
        at.server.updates.hold()
        await at.anna.say(at.chat, "one")
        await at.anna.say(at.chat, "two")
        await at.server.updates.release(reversed)
        await receiver.has("one", "two")
        assert receiver.texts() == ["two", "one"]

        await at.server.updates.redeliver(at.server.updates.history[-1])

        await receiver.has("two", "one", "two")
        assert receiver.received[0].update_id == receiver.received[2].update_id


@pytest.mark.parametrize(
    "url", ["telegram", "ftp://127.0.0.1/", "http://[", "https://example.org/x"]
)
async def test_a_webhook_on_another_machine_is_refused(url: str) -> None:
    async with scene() as at:
        with pytest.raises(BadRequest):
            await at.bot.set_webhook(url)


@pytest.mark.parametrize(
    ("secret", "expected"),
    [
        ("a" * 257, "Secret token is too long"),
        ("sp ace", "Secret token contains unallowed characters"),
    ],
)
async def test_a_bad_secret_is_refused(secret: str, expected: str) -> None:
    async with scene() as at:
        with pytest.raises(BadRequest) as caught:
            await at.bot.set_webhook(CLOSED_URL, secret_token=secret)

    assert refusal(caught) == expected


async def test_the_server_stops_at_once_while_deliveries_fail_or_hang() -> None:
    async with scene() as at, receiving() as receiver:
        receiver.is_open = False
        await at.bot.set_webhook(receiver.url)
        await at.anna.say(at.chat, "one")
        await receiver.has("one")

        await asyncio.wait_for(at.server.stop(), 2)


async def test_a_delivery_cut_by_a_stop_is_repeated_after_the_start() -> None:
    async with scene() as at, receiving() as receiver:
        receiver.is_open = False
        await at.bot.set_webhook(receiver.url)
        await at.anna.say(at.chat, "one")
        await receiver.has("one")
        await at.server.stop()

        await receiver.open()
        await at.server.start()
        await receiver.has("one", "one")
        await settled(at)
