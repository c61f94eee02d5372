import asyncio
from datetime import timedelta

import pytest
from telegram.error import Forbidden, NetworkError, RetryAfter, TimedOut

from tests.servers.bot_api import (
    DropConnection,
    FloodWait,
    Hang,
    Refuse,
    SentThenDrop,
    ServerError,
    SlowAnswer,
)
from tests.servers.bot_api_client import raw_client, scene


@pytest.fixture(autouse=True)
def _durations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let python-telegram-bot give waiting times without a deprecation warning."""
    monkeypatch.setenv("PTB_TIMEDELTA", "1")


async def test_a_flood_wait_strikes_once() -> None:
    async with scene() as at:
        at.server.faults.add(FloodWait(2), method="sendMessage")
        with pytest.raises(RetryAfter) as caught:
            await at.bot.send_message(at.chat.id, "hello")
        assert caught.value.retry_after == timedelta(seconds=2)
        assert at.chat.replies == []

        await at.bot.send_message(at.chat.id, "hello")


async def test_a_flood_wait_is_also_in_the_header() -> None:
    async with scene() as at, raw_client(at.server) as client:
        at.server.faults.add(FloodWait(7))
        answer = await client.get("getMe")

    assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")


async def test_a_refusal_has_the_given_text() -> None:
    async with scene() as at:
        at.server.faults.add(Refuse(403, "Forbidden: user is deactivated"), times=None)
        for _ in range(3):
            with pytest.raises(Forbidden, match="user is deactivated"):
                await at.bot.send_message(at.chat.id, "hello")

        at.server.faults.clear()
        await at.bot.send_message(at.chat.id, "hello")


async def test_a_server_error_is_a_network_error() -> None:
    async with scene() as at:
        at.server.faults.add(ServerError(502), times=1)
        with pytest.raises(NetworkError, match="Bad Gateway"):
            await at.bot.send_message(at.chat.id, "hello")
        assert at.chat.replies == []


async def test_a_dropped_call_is_not_carried_out() -> None:
    async with scene() as at:
        at.server.faults.add(DropConnection())
        with pytest.raises(NetworkError):
            await at.bot.send_message(at.chat.id, "hello")

        assert at.chat.replies == []
        assert at.server.calls[-1].answer is None


async def test_the_answer_of_a_successful_call_can_be_lost() -> None:
    async with scene() as at:
        at.server.faults.add(SentThenDrop(), method="sendmessage")
        with pytest.raises(NetworkError):
            await at.bot.send_message(at.chat.id, "hello")

        assert [message.text for message in at.chat.replies] == ["hello"]


async def test_a_hanging_call_times_out_and_is_never_carried_out() -> None:
    async with scene() as at:
        at.server.faults.add(Hang(60), method="sendMessage")
        with pytest.raises(TimedOut):
            await at.bot.send_message(at.chat.id, "hello", read_timeout=0.05)

        assert at.chat.replies == []


async def test_a_hanging_call_ends_with_a_broken_connection() -> None:
    async with scene() as at:
        at.server.faults.add(Hang(0.01), method="sendMessage")
        with pytest.raises(NetworkError):
            await at.bot.send_message(at.chat.id, "hello")


async def test_a_slow_answer_misses_a_short_timeout() -> None:
    async with scene() as at:
        at.server.faults.add(SlowAnswer(60), method="sendMessage", text="hello")
        at.server.faults.add(SlowAnswer(0.01), method="sendMessage", text="again")
        with pytest.raises(TimedOut):
            await at.bot.send_message(at.chat.id, "hello", read_timeout=0.05)
        await at.bot.send_message(at.chat.id, "again")

        assert [message.text for message in at.chat.replies] == ["hello", "again"]


async def test_a_fault_can_be_limited_to_one_chat_and_text() -> None:
    async with scene() as at:
        bert = at.server.user(2, "Bert")
        berts = at.server.private_chat(bert)
        await bert.say(berts, "/start")
        at.server.faults.add(FloodWait(1), chat=at.chat, text="secret")

        await at.bot.send_message(berts.id, "a secret")
        await at.bot.send_message(at.chat.id, "nothing special")
        with pytest.raises(RetryAfter):
            await at.bot.send_message(at.chat.id, "a secret")


async def test_faults_strike_in_the_order_in_which_they_were_added() -> None:
    async with scene() as at:
        at.server.faults.add(FloodWait(1))
        at.server.faults.add(ServerError())
        with pytest.raises(RetryAfter):
            await at.bot.get_me()
        with pytest.raises(NetworkError, match="Internal Server Error"):
            await at.bot.get_me()
        await at.bot.get_me()


async def test_a_lost_batch_of_updates_is_repeated() -> None:
    async with scene() as at:
        await at.anna.say(at.chat, "hello")
        at.server.faults.add(SentThenDrop(), method="getUpdates")
        with pytest.raises(NetworkError):
            await at.updates()

        assert len(await at.updates()) == 1


async def test_the_server_stops_at_once_while_a_call_hangs() -> None:
    async with scene() as at:
        at.server.faults.add(Hang(60), method="getMe")
        call = asyncio.create_task(at.bot.get_me())
        await at.server.wait_for(lambda: at.server.calls_to("getMe")[1:])

        await asyncio.wait_for(at.server.stop(), 2)

        with pytest.raises(NetworkError):
            await call
