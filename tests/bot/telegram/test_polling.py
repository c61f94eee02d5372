"""Polling confirms only accepted updates and goes on until it is cancelled."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from bot.telegram import polling
from bot.telegram.bot_api import TelegramClient
from bot.telegram.connection import Backoff, TelegramHealth
from bot.telegram.errors import NotAccepted, RefusedByStore, UnreadableUpdate
from bot.telegram.polling import Poller
from tests.bot.telegram.doubles import ClosedMailbox, Mailbox, Pauses, ScriptedLease
from tests.bot.telegram.scripted_api import DONE, TOKEN, Act, ScriptedApi, ok, refusal

NO_WEBHOOK = ok({"url": "", "has_custom_certificate": False, "pending_update_count": 0})
WEBHOOK = ok(
    {"url": "https://bot.example/s3cret", "has_custom_certificate": False}
    | {"pending_update_count": 0}
)


def updates(*ids: int) -> Act:
    return ok([{"update_id": update_id} for update_id in ids])


@asynccontextmanager
async def running(poller: Poller) -> AsyncIterator[None]:
    task = asyncio.create_task(poller.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def offsets(api: ScriptedApi) -> list[str | None]:
    return [call.parameters.get("offset") for call in api.named("getUpdates")]


async def test_updates_are_accepted_in_order_and_confirmed_by_the_next_poll(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    api.script(NO_WEBHOOK, updates(5, 6), updates(7), "hang")
    mailbox = Mailbox()
    async with running(Poller(client, mailbox.accept, ScriptedLease(), Backoff("poll", health))):
        await api.hanging.wait()
    assert mailbox.ids == [5, 6, 7]
    assert offsets(api) == [None, "7", "8"]
    assert health.last_update_at == 1_000.0


async def test_a_webhook_is_taken_over_if_we_may_and_waiting_updates_are_kept(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    api.script(WEBHOOK, DONE, updates(5), "hang")
    poller = Poller(
        client, Mailbox().accept, ScriptedLease(), Backoff("poll", health), take_over=True
    )
    async with running(poller):
        await api.hanging.wait()
    (deleted,) = api.named("deleteWebhook")
    assert deleted.parameters == {"drop_pending_updates": "false"}


async def test_a_webhook_that_we_may_not_delete_is_kept_and_reported(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    api.script(WEBHOOK, NO_WEBHOOK, "hang")
    seen: list[str] = []

    async def look(_: float) -> None:
        seen.append(health.last_error)

    async with running(
        Poller(client, Mailbox().accept, ScriptedLease(), Backoff("poll", health, look))
    ):
        await api.hanging.wait()
    assert seen == ["WebhookTaken"]
    assert api.named("deleteWebhook") == []


async def test_after_a_conflict_the_webhook_is_checked_again(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    """The process that we took over from may set it again before it stops."""
    conflict = refusal(409, "Conflict: can't use getUpdates method while webhook is active")
    api.script(NO_WEBHOOK, conflict, WEBHOOK, DONE, updates(5), "hang")
    mailbox = Mailbox()
    poller = Poller(
        client, mailbox.accept, ScriptedLease(), Backoff("poll", health, Pauses()), take_over=True
    )
    async with running(poller):
        await api.hanging.wait()
    assert mailbox.ids == [5]


async def test_a_server_without_webhook_methods_is_polled(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    api.script(refusal(404, "Not Found"), updates(5), "hang")
    mailbox = Mailbox()
    async with running(Poller(client, mailbox.accept, ScriptedLease(), Backoff("poll", health))):
        await api.hanging.wait()
    assert mailbox.ids == [5]


async def test_an_empty_answer_that_came_at_once_is_followed_by_a_pause(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    """A server that does not hold polls open would be polled hundreds of times a second."""
    api.script(NO_WEBHOOK, updates(), updates(), updates(5), "hang")
    pauses = Pauses()
    async with running(
        Poller(client, Mailbox().accept, ScriptedLease(), Backoff("poll", health, pauses))
    ):
        await api.hanging.wait()
    assert pauses.taken_s == [1.0, 1.0]


async def test_a_poll_that_was_held_open_is_followed_by_the_next_at_once(
    client: TelegramClient,
    api: ScriptedApi,
    health: TelegramHealth,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(polling, "_AT_ONCE_S", 0.0)
    api.script(NO_WEBHOOK, updates(), "hang")
    pauses = Pauses()
    async with running(
        Poller(client, Mailbox().accept, ScriptedLease(), Backoff("poll", health, pauses))
    ):
        await api.hanging.wait()
    assert pauses.taken_s == []


async def test_after_an_empty_poll_no_offset_is_sent(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    """Telegram restarts its update ids after a quiet week."""
    api.script(NO_WEBHOOK, updates(500), updates(), updates(3), "hang")
    mailbox, pause = Mailbox(), Pauses()
    async with running(
        Poller(client, mailbox.accept, ScriptedLease(), Backoff("poll", health, pause))
    ):
        await api.hanging.wait()
    assert mailbox.ids == [500, 3]
    assert offsets(api) == [None, "501", None, "4"]


@pytest.mark.parametrize("failure", [NotAccepted(), RuntimeError("an error of ours")])
async def test_the_offset_never_passes_an_update_that_was_not_accepted(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth, failure: Exception
) -> None:
    api.script(NO_WEBHOOK, updates(5, 6), updates(5, 6), "hang")
    mailbox, pauses = Mailbox(failure), Pauses()
    async with running(
        Poller(client, mailbox.accept, ScriptedLease(), Backoff("poll", health, pauses))
    ):
        await api.hanging.wait()
    assert mailbox.ids == [5, 6]
    assert offsets(api) == [None, None, "7"]
    assert len(pauses.taken_s) == 1


async def test_commands_behind_a_refused_message_are_accepted_once(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    """The offset waits for the refused message. Once it is accepted, the rest follows in order."""
    polls = (updates(5, 6, 7), updates(5, 6, 7, 8, 9), updates(5, 6, 7, 8, 9), updates(10))
    api.script(NO_WEBHOOK, *polls, "hang")
    mailbox = ClosedMailbox(6, 8)
    seen: list[list[object]] = []

    async def pause(_: float) -> None:
        seen.append([*mailbox.ids])
        mailbox.is_open = len(seen) == 2

    async with running(
        Poller(client, mailbox.accept, ScriptedLease(), Backoff("poll", health, pause))
    ):
        await api.hanging.wait()
    assert seen == [[6], [6, 8]]
    assert mailbox.ids == [6, 8, 5, 7, 9, 10]
    assert offsets(api) == [None, None, None, "10", "11"]


async def test_an_update_that_the_store_refuses_for_good_is_dropped_only_if_others_are_taken(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    """A bad login, or a key that all updates need, refuses every update: then none is dropped."""
    alone = [updates(5) for _ in range(polling._MAX_REFUSALS + 2)]
    api.script(NO_WEBHOOK, *alone, updates(5, 6, 7), updates(5, 6, 7), updates(8), "hang")
    taken: list[object] = []

    async def accept(raw: Mapping[str, object], *, after_refusal: bool = False) -> None:
        assert not after_refusal
        if raw["update_id"] == 5:
            raise RefusedByStore
        taken.append(raw["update_id"])

    async with running(Poller(client, accept, ScriptedLease(), Backoff("poll", health, Pauses()))):
        await api.hanging.wait()
    assert taken == [6, 7, 8]
    assert offsets(api)[-3:] == [None, "8", "9"]


async def test_no_message_overtakes_a_refused_message(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    """Intake may open while the updates of one poll are handed on."""
    api.script(NO_WEBHOOK, updates(5, 6), updates(5, 6), "hang")
    mailbox = ClosedMailbox()

    async def accept(raw: Mapping[str, object], *, after_refusal: bool = False) -> None:
        try:
            await mailbox.accept(raw, after_refusal=after_refusal)
        finally:
            mailbox.is_open = True

    async with running(Poller(client, accept, ScriptedLease(), Backoff("poll", health, Pauses()))):
        await api.hanging.wait()
    assert mailbox.ids == [5, 6]


async def test_after_any_other_failure_the_rest_of_the_poll_is_not_tried(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    """Each try could take as long as intake waits for Redis."""
    api.script(NO_WEBHOOK, updates(4, 5, 6, 7), "hang")
    mailbox, waiting = ClosedMailbox(5, 6, 7), asyncio.Event()
    tried: list[object] = []

    async def accept(raw: Mapping[str, object], *, after_refusal: bool = False) -> None:
        tried.append(raw["update_id"])
        if raw["update_id"] == 6:
            raise NotAccepted
        await mailbox.accept(raw, after_refusal=after_refusal)

    async def wait_for_ever(_: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    async with running(
        Poller(client, accept, ScriptedLease(), Backoff("poll", health, wait_for_ever))
    ):
        await waiting.wait()
    assert (tried, mailbox.ids, health.last_error) == ([4, 5, 6], [5], "NotAccepted")


async def test_an_unreadable_update_is_counted_and_skipped(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    api.script(NO_WEBHOOK, updates(5, 6), "hang")
    mailbox = Mailbox(UnreadableUpdate(5))
    async with running(Poller(client, mailbox.accept, ScriptedLease(), Backoff("poll", health))):
        await api.hanging.wait()
    assert (mailbox.ids, offsets(api)) == ([6], [None, "7"])
    assert health.unreadable_updates == 1


async def test_the_waits_after_conflicts_and_outages_grow(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    conflict = refusal(409, "Conflict: terminated by other getUpdates request")
    api.script(NO_WEBHOOK, conflict, NO_WEBHOOK, "cut", refusal(502, "Bad Gateway"))
    api.script(updates(5), "hang")
    mailbox, pauses = Mailbox(), Pauses()
    async with running(
        Poller(client, mailbox.accept, ScriptedLease(), Backoff("poll", health, pauses))
    ):
        await api.hanging.wait()
    assert mailbox.ids == [5]
    bounds = [(0.25, 0.5), (0.5, 1.0), (1.0, 2.0)]
    assert all(
        low <= pause <= high for pause, (low, high) in zip(pauses.taken_s, bounds, strict=True)
    )
    assert health.last_error == ""


async def test_health_names_the_failure_while_it_lasts(health: TelegramHealth) -> None:
    client = TelegramClient(TOKEN, "http://127.0.0.1:1")
    waiting = asyncio.Event()

    async def wait_for_ever(_: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    poller = Poller(
        client, Mailbox().accept, ScriptedLease(), Backoff("poll", health, wait_for_ever)
    )
    async with running(poller):
        await waiting.wait()
    assert health.last_error == "Unreachable"
    await client.close()


async def test_the_wait_of_a_429_is_kept_in_full(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    api.script(refusal(429, "Too Many Requests", retry_after=9), NO_WEBHOOK, "hang")
    pauses = Pauses()
    async with running(
        Poller(client, Mailbox().accept, ScriptedLease(), Backoff("poll", health, pauses))
    ):
        await api.hanging.wait()
    assert pauses.taken_s[0] > 9


async def test_without_the_lease_telegram_is_not_polled(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    api.script(NO_WEBHOOK, "hang")
    pauses = Pauses()
    async with running(
        Poller(client, Mailbox().accept, ScriptedLease(refusals=2), Backoff("poll", health, pauses))
    ):
        await api.hanging.wait()
    assert pauses.taken_s == [1.0, 1.0]
    assert not health.standby
    assert len(api.calls) == 2


async def test_a_process_on_standby_reports_no_failure(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    """The failure now concerns the process that polls."""
    api.script(NO_WEBHOOK, refusal(502, "Bad Gateway"))
    lease, standby = ScriptedLease(), asyncio.Event()

    async def pause(_: float) -> None:
        if health.standby:
            standby.set()
            await asyncio.Event().wait()
        lease.refusals = 1

    async with running(Poller(client, Mailbox().accept, lease, Backoff("poll", health, pause))):
        await standby.wait()
    assert health.last_error == ""


async def test_stopping_aborts_the_poll_and_releases_the_lease(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    api.script(NO_WEBHOOK, "hang")
    lease = ScriptedLease()
    async with running(Poller(client, Mailbox().accept, lease, Backoff("poll", health))):
        await api.hanging.wait()
    await api.abandoned.wait()
    assert lease.released.is_set()


async def test_stopping_while_an_update_is_being_accepted_leaves_it_with_telegram(
    client: TelegramClient, api: ScriptedApi, health: TelegramHealth
) -> None:
    api.script(NO_WEBHOOK, updates(5))
    taking = asyncio.Event()

    async def accept(_: object, **__: bool) -> None:
        taking.set()
        await asyncio.Event().wait()

    async with running(Poller(client, accept, ScriptedLease(), Backoff("poll", health))):
        await taking.wait()
    assert offsets(api) == [None]
