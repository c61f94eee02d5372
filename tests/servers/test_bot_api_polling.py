import asyncio
from collections.abc import Sequence

import pytest
from telegram import Update
from telegram.error import Conflict

from tests.servers.bot_api_client import Scene, refusal, scene

WEBHOOK = "http://127.0.0.1:9/telegram"  # no server listens there
OTHER_POLL = (
    "Terminated by other getupdates request; make sure that only one bot instance is running"
)


def texts(updates: Sequence[Update]) -> list[str | None]:
    return [update.message.text if update.message else None for update in updates]


async def waiting_poll(at: Scene) -> "asyncio.Task[tuple[Update, ...]]":
    """Return a long poll that has reached the server."""
    before = len(at.server.calls_to("getUpdates"))
    poll = asyncio.create_task(at.bot.get_updates(timeout=50))
    await at.server.wait_for(lambda: len(at.server.calls_to("getUpdates")) > before)
    return poll


async def test_updates_wait_until_they_are_confirmed() -> None:
    async with scene() as at:
        await at.anna.say(at.chat, "one")
        await at.anna.say(at.chat, "two")

        first = await at.updates()
        assert texts(first) == texts(await at.updates()) == ["one", "two"]
        assert first[0].update_id + 1 == first[1].update_id
        assert texts(await at.updates(offset=first[1].update_id)) == ["two"]
        assert texts(await at.updates()) == ["two"]
        assert texts(await at.updates(offset=first[1].update_id + 1)) == []


async def test_a_limit_leaves_the_rest_for_later() -> None:
    async with scene() as at:
        for text in ("one", "two", "three"):
            await at.anna.say(at.chat, text)

        first = await at.updates(limit=2)
        assert texts(first) == ["one", "two"]
        assert texts(await at.updates(offset=first[-1].update_id + 1)) == ["three"]


async def test_a_negative_offset_keeps_only_the_newest() -> None:
    async with scene() as at:
        for text in ("one", "two", "three"):
            await at.anna.say(at.chat, text)

        assert texts(await at.updates(offset=-2)) == ["two", "three"]
        assert texts(await at.updates()) == ["two", "three"]


async def test_a_long_poll_is_answered_as_soon_as_something_happens() -> None:
    async with scene() as at:
        poll = await waiting_poll(at)
        await at.anna.say(at.chat, "at last")

        assert texts(await poll) == ["at last"]


async def test_a_long_poll_returns_nothing_after_its_timeout() -> None:
    async with scene() as at:
        assert await at.bot.get_updates(timeout=1) == ()


async def test_a_newer_poll_ends_the_one_that_waits() -> None:
    async with scene() as at:
        earlier = await waiting_poll(at)
        newer = await waiting_poll(at)

        with pytest.raises(Conflict) as caught:
            await earlier
        await at.anna.say(at.chat, "for the newer one")

        assert refusal(caught).lower() == "conflict: " + OTHER_POLL.lower()
        assert texts(await newer) == ["for the newer one"]


async def test_a_poll_of_a_dead_client_loses_no_update() -> None:
    async with scene() as at:
        host, port = at.server.url.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, port)
        path = f"/bot{at.server.token}/getUpdates?timeout=50"
        polls = len(at.server.calls_to("getUpdates"))
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        await at.server.wait_for(lambda: len(at.server.calls_to("getUpdates")) > polls)
        writer.transport.abort()
        await at.anna.say(at.chat, "are you there?")

        assert texts(await at.updates()) == ["are you there?"]


async def test_a_webhook_forbids_polling() -> None:
    async with scene() as at:
        await at.bot.set_webhook(WEBHOOK)
        with pytest.raises(Conflict):
            await at.updates()

        await at.bot.delete_webhook()
        assert await at.updates() == ()


async def test_setting_a_webhook_ends_a_poll_that_waits() -> None:
    async with scene() as at:
        poll = await waiting_poll(at)
        await at.bot.set_webhook(WEBHOOK)

        with pytest.raises(Conflict) as caught:
            await poll

    assert refusal(caught).lower() == "conflict: terminated by setwebhook request"


async def test_deleting_no_webhook_does_not_end_a_poll() -> None:
    async with scene() as at:
        poll = await waiting_poll(at)
        await at.bot.delete_webhook()
        await at.anna.say(at.chat, "still there?")

        assert texts(await poll) == ["still there?"]


async def test_only_the_kinds_asked_for_arrive_from_then_on() -> None:
    async with scene() as at:
        said = await at.anna.say(at.chat, "one")
        await at.bot.get_updates(allowed_updates=["edited_message"])
        await at.anna.say(at.chat, "two")
        await at.anna.edit(said, "uno")

        updates = await at.updates()
        assert [update.message is None for update in updates] == [False, True]
        info = await at.bot.get_webhook_info()
        assert info.allowed_updates == ("edited_message",)


async def test_allowed_updates_stay_until_they_are_named_again() -> None:
    async with scene() as at:
        await at.bot.get_updates(allowed_updates=["poll"])
        await at.updates()
        assert (await at.bot.get_webhook_info()).allowed_updates == ("poll",)

        await at.bot.get_updates(allowed_updates=[])
        assert (await at.bot.get_webhook_info()).allowed_updates == ()


async def test_held_updates_are_delivered_after_the_release() -> None:
    async with scene() as at:
        at.server.updates.hold()
        await at.anna.say(at.chat, "one")
        assert await at.updates() == ()
        assert (await at.bot.get_webhook_info()).pending_update_count == 1

        await at.server.updates.release()
        assert texts(await at.updates()) == ["one"]


async def test_a_held_poll_waits_for_the_release() -> None:
    async with scene() as at:
        at.server.updates.hold()
        poll = await waiting_poll(at)
        await at.anna.say(at.chat, "one")
        await at.server.updates.release()

        assert texts(await poll) == ["one"]


async def test_updates_can_come_out_of_order_and_none_is_lost() -> None:
    async with scene() as at:
        at.server.updates.hold()
        for text in ("one", "two", "three"):
            await at.anna.say(at.chat, text)
        await at.server.updates.release(reversed)

        first = await at.updates(limit=2)
        assert texts(first) == ["three", "two"]
        assert texts(await at.updates(offset=first[0].update_id + 1)) == ["one"]
        assert texts(await at.updates(offset=first[0].update_id + 1)) == []


async def test_a_confirmed_update_can_be_delivered_again() -> None:
    async with scene() as at:
        await at.anna.say(at.chat, "one")
        update = (await at.updates())[0]
        assert await at.updates(offset=update.update_id + 1) == ()

        await at.server.updates.redeliver(at.server.updates.history[-1])

        assert texts(await at.updates(offset=update.update_id + 1)) == ["one"]
        assert await at.updates(offset=update.update_id + 1) == ()
