"""How updates reach the bot, by polling or a webhook, and the faults on the way of calls."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from telegram import Update
from telegram.error import Conflict, NetworkError, TimedOut

from tests.servers.bot_api import (
    BotApiServer,
    DropConnection,
    FloodWait,
    Hang,
    Pace,
    Refuse,
    SentThenDrop,
    ServerError,
    SlowAnswer,
)
from tests.servers.bot_api.account import Changes
from tests.servers.bot_api_client import Scene, raw_client, scene
from tests.servers.dropping import DroppingServer

CLOSED_URL = "http://127.0.0.1:9/telegram"
NEVER_AGAIN = Pace(timeout_s=2, first_retry_s=60, longest_retry_s=60)


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


async def test_updates_wait_until_they_are_confirmed() -> None:
    async with scene() as at:
        for text in ("one", "two", "three"):
            await at.anna.say(at.chat, text)
        for _ in range(2):
            first, second, third = await at.updates()
            assert texts([first, second, third]) == ["one", "two", "three"]
        assert texts(await at.updates(offset=second.update_id)) == ["two", "three"]
        assert texts(await at.updates(offset=third.update_id + 1)) == []


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
        annas = [text for text in texts(receiver.received) if text != "b1"]
        assert annas == ["a1", "a1", "a2"]


async def test_the_last_error_is_reported_until_a_new_webhook_is_tried() -> None:
    async with (
        scene(BotApiServer(pace=NEVER_AGAIN)) as at,
        receiving(500) as receiver,
        receiving(is_open=False) as silent,
    ):
        await at.anna.say(at.chat, "one")
        for url, error in (
            (receiver.url, "Wrong response from the webhook: 500 Internal Server Error"),
            (silent.url, "Read timeout expired"),
            (CLOSED_URL, "Connection refused"),
        ):
            await at.bot.set_webhook(url, max_connections=7, allowed_updates=["message"])
            await at.server.wait_for(lambda: at.server.updates.last_error)
            info = await at.bot.get_webhook_info()
            assert (info.url, info.last_error_message) == (url, error)
            assert (info.pending_update_count, info.max_connections) == (1, 7)
        await at.bot.set_webhook(CLOSED_URL, max_connections=7)  # which changes nothing
        info = await at.bot.get_webhook_info()
        assert (info.last_error_message, info.allowed_updates) == (error, ("message",))


async def test_faults_strike_in_their_order_as_often_as_they_were_added() -> None:
    async with scene() as at, raw_client(at.server) as client:
        at.server.faults.add(FloodWait(7), method="sendMessage")
        at.server.faults.add(ServerError(502), method="sendMessage", times=2)
        refusal = Refuse(400, "Bad Request: no")
        at.server.faults.add(refusal, chat=at.chat, text="secret", times=None)
        met = []
        for text in ("hello", "hello", "hello", "hello", "a secret", "a secret"):
            answer = await client.post("sendMessage", data={"chat_id": 1, "text": text})
            met.append((answer.status_code, answer.headers.get("retry-after")))
        assert met == [(429, "7"), (502, None), (502, None), (200, None), (400, None), (400, None)]
        assert answer.json()["description"] == "Bad Request: no"
        at.server.faults.clear()
        await at.bot.send_message(1, "a secret")


@pytest.mark.parametrize(
    ("fault", "error", "is_carried_out"),
    [
        (DropConnection(), NetworkError, False),
        (Hang(60), TimedOut, False),
        (Hang(0.01), NetworkError, False),
        (SentThenDrop(), NetworkError, True),
        (SlowAnswer(60), TimedOut, True),
        (SlowAnswer(0.01), None, True),
    ],
    ids=str,
)
async def test_a_call_may_be_carried_out_without_an_answer(
    fault: DropConnection | Hang | SentThenDrop | SlowAnswer,
    error: type[NetworkError] | None,
    *,
    is_carried_out: bool,
) -> None:
    async with scene() as at:
        at.server.faults.add(fault, method="sendmessage")
        read_timeout = 2 if error is TimedOut else 60
        try:
            await at.bot.send_message(1, "hello", read_timeout=read_timeout)
        except NetworkError as raised:
            assert type(raised) is error  # noqa: PT017 - one case raises nothing
        assert [message.text for message in at.chat.replies] == ["hello"] * is_carried_out
        assert (at.server.calls_to("sendMessage")[-1].answer is None) is (error is not None)


async def test_the_server_stops_while_calls_hang_and_cuts_them() -> None:
    async with scene() as at:
        at.server.faults.add(Hang(600), method="getMe")
        calls = [asyncio.create_task(at.bot.get_me()), await waiting_poll(at)]
        await at.server.wait_for(lambda: at.server.calls_to("getMe")[1:])
        await asyncio.wait_for(at.server.stop(), 30)
        for call in calls:
            with pytest.raises(NetworkError, match=r"RemoteProtocolError|ReadError"):
                await call
