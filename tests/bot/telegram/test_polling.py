"""Polling confirms only accepted updates and goes on until it is cancelled."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from time import monotonic

import pytest
from structlog.testing import capture_logs

from bot.telegram import connection
from bot.telegram.bot_api import TelegramClient
from bot.telegram.connection import Backoff, Pause, Poller, TelegramHealth
from bot.telegram.errors import NotAccepted, OutcomeUnknown, UpdateRefused
from bot.telegram.intake import Accept
from memory.memory import Memory
from memory.store.errors import StoreRefused
from memory.store.store import NamedLease
from tests.bot.telegram.doubles import ClosedMailbox, Mailbox, Pauses, ScriptedLease
from tests.bot.telegram.scripted_api import Act, Reply, ScriptedApi, delivering_to, ok, refusal

NO_WEBHOOK = delivering_to("")
WEBHOOK = delivering_to("https://bot.example/s3cret")
CONFLICT = refusal(409, "Conflict: can't use getUpdates method while webhook is active")


def updates(*ids: int, press: int = 0) -> Act:
    kinds = {press: "callback_query"}
    return ok([{"update_id": each, kinds.get(each, "message"): {}} for each in ids])


Polled = Callable[..., Awaitable[Mailbox]]


@asynccontextmanager
async def running(poller: Poller) -> AsyncIterator[None]:
    task = asyncio.create_task(poller.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def polled(client: TelegramClient, api: ScriptedApi, health: TelegramHealth) -> Polled:
    async def poll(
        *acts: Act,
        accept: Accept | None = None,
        pause: Pause | None = None,
        lease: NamedLease | None = None,
        take_over: bool = False,
        until: asyncio.Event | None = None,
    ) -> Mailbox:
        """Poll a server that does `acts` and then hangs, until it hangs or until `until`."""
        api.script(*acts, "hang")
        backoff, mailbox = Backoff("poll", health, pause or Pauses()), Mailbox()
        lease, taken = lease or ScriptedLease(), accept or mailbox.accept
        async with running(Poller(client, taken, lease, backoff, take_over=take_over)):
            await (until or api.hanging).wait()
        return mailbox

    return poll


class Endless:
    """A pause that does not end."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def __call__(self, _: float) -> None:
        self.begun.set()
        await asyncio.Event().wait()


def offsets(api: ScriptedApi) -> list[str | None]:
    return [call.parameters.get("offset") for call in api.named("getUpdates")]


async def test_updates_are_accepted_in_order_and_confirmed_by_the_next_poll(
    polled: Polled, api: ScriptedApi
) -> None:
    mailbox = await polled(updates(5, 6), updates(7))
    assert mailbox.ids == [5, 6, 7]
    assert offsets(api) == [None, "7", "8"]


async def test_only_after_a_conflict_a_webhook_is_taken_over_and_waiting_updates_are_kept(
    polled: Polled, api: ScriptedApi
) -> None:
    """Before the first poll `identify` has made way. The other process may set it again."""
    mailbox = await polled(updates(4), CONFLICT, WEBHOOK, ok([]), updates(5), take_over=True)
    (deleted,) = api.named("deleteWebhook")
    assert deleted.parameters == {"drop_pending_updates": "false"}
    assert mailbox.ids == [4, 5]


async def test_a_webhook_that_we_may_not_delete_is_kept_and_reported(
    polled: Polled, api: ScriptedApi, health: TelegramHealth
) -> None:
    seen: list[str] = []

    async def look(_: float) -> None:
        seen.append(health.last_error)

    await polled(CONFLICT, WEBHOOK, NO_WEBHOOK, pause=look)
    assert seen == ["Conflict", "WebhookTaken"]
    assert api.named("deleteWebhook") == []


async def test_a_server_without_webhook_methods_is_polled(polled: Polled) -> None:
    assert (await polled(CONFLICT, refusal(404, "Not Found"), updates(5))).ids == [5]


@pytest.mark.parametrize(("at_once_s", "paused_s"), [(None, [1.0, 1.0]), (0.0, [])])
async def test_only_an_empty_answer_that_came_at_once_is_followed_by_a_pause(
    polled: Polled, at_once_s: float | None, paused_s: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that does not hold polls open would be polled hundreds of times a second."""
    if at_once_s is not None:
        monkeypatch.setattr(connection, "_AT_ONCE_S", at_once_s)
    pauses = Pauses()
    await polled(updates(), updates(), updates(5), pause=pauses)
    assert pauses.taken_s == paused_s


async def test_after_an_empty_poll_no_offset_is_sent(polled: Polled, api: ScriptedApi) -> None:
    """Telegram restarts its update ids after a quiet week."""
    assert (await polled(updates(500), updates(), updates(3))).ids == [500, 3]
    assert offsets(api) == [None, "501", None, "4"]


@pytest.mark.parametrize("failure", [NotAccepted(), RuntimeError("an error of ours")])
async def test_the_offset_never_passes_an_update_that_was_not_accepted(
    polled: Polled, api: ScriptedApi, failure: Exception
) -> None:
    mailbox, pauses = Mailbox(failure), Pauses()
    await polled(*[updates(5, 6)] * 2, accept=mailbox.accept, pause=pauses)
    assert mailbox.ids == [5, 6]
    assert offsets(api) == [None, None, "7"]
    assert len(pauses.taken_s) == 1


async def test_commands_after_a_refusal_are_accepted_once(polled: Polled, api: ScriptedApi) -> None:
    """The offset waits for the refused message. Once it is accepted, the rest follows in order."""
    full = updates(*range(5, 105))
    polls = (updates(5, 6, 7), full, full, updates(110))
    mailbox = ClosedMailbox(6, 8)
    seen: list[list[object]] = []

    async def pause(_: float) -> None:
        seen.append([*mailbox.ids])
        mailbox.is_open = len(seen) == 2

    await polled(*polls, accept=mailbox.accept, pause=pause)
    assert seen == [[6], [6, 8]]
    assert mailbox.ids == [6, 8, 5, 7, *range(9, 105), 110]
    assert offsets(api) == [None, None, None, "105", "111"]


async def test_others_hardly_wait_while_one_update_is_refused(
    polled: Polled, api: ScriptedApi
) -> None:
    pauses, refusals, taken = Pauses(), [UpdateRefused()] * 12, list[object]()

    async def accept(raw: Mapping[str, object], *, after_refusal: bool = False) -> None:
        assert not after_refusal
        if raw["update_id"] == 4 and refusals:
            raise refusals.pop()
        if raw["update_id"] == 10 and len(taken) < 105:
            raise UpdateRefused
        taken.append(raw["update_id"])

    # Of a full poll, too, intake sees again and again that the others are taken.
    full, again, away = [updates(*range(10, 110), press=11)], [updates(4, 5, 6)], refusal(502, "")
    await polled(*full * 8, *again * 6, away, *again * 7, updates(7), accept=accept, pause=pauses)
    assert taken.count(11) == 1  # a press acts again: one for the opposite may have come meanwhile
    assert max(pauses.taken_s) <= 1
    assert taken[-4:] == [5, 6, 4, 7]
    assert offsets(api)[-3:] == ["110", "7", "8"]


async def test_what_is_refused_alone_in_full_polls_is_held_and_the_next_poll_goes_on(
    polled: Polled, api: ScriptedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Intake stores none of the others, so it cannot see that Redis refuses only this one."""
    monkeypatch.setattr(connection, "_MAX_STUCK", 3)
    refusals, taken = [UpdateRefused()] * 5, list[object]()

    async def accept(raw: Mapping[str, object], **_: bool) -> None:
        update_id = raw["update_id"]
        if update_id in (10, 110) and 211 not in taken:
            raise UpdateRefused from StoreRefused("wrong type")
        if update_id == 11 and refusals:
            raise refusals.pop()
        if update_id in (12, 13) and 210 not in taken:  # presses in a chat for which calls fail
            raise UpdateRefused from OutcomeUnknown("500")
        taken.append(update_id)

    full, more = [updates(*range(10, 110))], [updates(*range(110, 210))]
    # Polls with two failures of Redis or ours do not count. One that is not full begins the count
    # again, and so does one that brings a second update that Redis refuses: it may refuse them all.
    polls = *full * 8, updates(10, 11), *full * 4, *more * 5, *[updates(110, 210, 211)] * 2
    await polled(*polls, accept=accept)
    assert offsets(api) == [None] * 13 + ["110"] * 7 + ["212"]
    assert taken[-6:] == [210, 211, 10, 12, 13, 110]


async def test_what_is_held_is_handed_on_by_a_process_that_stands_by(
    polled: Polled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Telegram has forgotten it, so the process that polls now cannot get it."""
    monkeypatch.setattr(connection, "_MAX_STUCK", 0)
    lease, on_standby, tried = ScriptedLease(), asyncio.Event(), list[object]()

    async def accept(raw: Mapping[str, object], **_: bool) -> None:
        tried.append(raw["update_id"])
        if raw["update_id"] == 10 and lease.refusals < 0:
            raise UpdateRefused from OutcomeUnknown("500")

    async def lose(_: float) -> None:
        if lease.refusals >= 0:
            on_standby.set()
        lease.refusals = 9
        await asyncio.sleep(0)  # else the loop would run nothing but this

    await polled(updates(*range(10, 110)), accept=accept, pause=lose, lease=lease, until=on_standby)
    assert tried == [*range(10, 110), 10]


@pytest.mark.parametrize(("held_s", "oldest", "room"), [(60, 10, 0), (-1, 110, 100)])
async def test_a_hundred_updates_are_held_and_each_for_a_day_at_most(
    polled: Polled, monkeypatch: pytest.MonkeyPatch, held_s: int, oldest: int, room: int
) -> None:
    monkeypatch.setattr(connection, "_MAX_STUCK", 0)
    monkeypatch.setattr(connection, "_HELD_S", held_s)
    tried = list[object]()

    async def accept(raw: Mapping[str, object], **_: bool) -> None:
        tried.append(raw["update_id"])
        raise UpdateRefused from OutcomeUnknown("500")

    with capture_logs() as logs:
        await polled(*[updates(*range(at, at + 100)) for at in (10, 110)], updates(), accept=accept)
    assert tried == [*range(10, 110), *range(10, 210), *range(oldest, oldest + 100)]
    assert [len(line["held"]) for line in logs if "held" in line] == [100, room]


async def test_an_update_that_cannot_be_read_costs_only_itself(
    polled: Polled, api: ScriptedApi
) -> None:
    half, deep = b'"\\ud83d, {\\"update_id\\": 1}"', b"[" * 5_000 + b"]" * 5_000
    values = [half, deep, b'"%b"' % (b"a" * 2**20), half]
    read = b", ".join(b'{"update_id": %d, "a": %b}' % each for each in enumerate(values, 5))
    read += b', {"update_id": %b}' % (b"9" * 5_000)
    taken: list[Mapping[str, object]] = []

    async def accept(raw: Mapping[str, object], **_: bool) -> None:
        taken.append(raw)

    await polled(Reply(b'{"ok": true, "result": [%b]}' % read), accept=accept)
    said = '\ufffd, {"update_id": 1}'
    assert [each.get("a") for each in taken] == [said, None, "a" * 2**20, said]
    assert offsets(api) == [None, "9"]


async def test_no_message_overtakes_a_refused_message(polled: Polled) -> None:
    """Intake may open while the updates of one poll are handed on."""
    mailbox = ClosedMailbox()

    async def accept(raw: Mapping[str, object], *, after_refusal: bool = False) -> None:
        try:
            await mailbox.accept(raw, after_refusal=after_refusal)
        finally:
            mailbox.is_open = True

    await polled(updates(5, 6), updates(5, 6), accept=accept)
    assert mailbox.ids == [5, 6]


async def test_after_any_other_failure_the_rest_of_the_poll_is_not_tried(
    polled: Polled, health: TelegramHealth
) -> None:
    """Each try could take as long as intake waits for Redis."""
    mailbox, pause = ClosedMailbox(5, 6, 7), Endless()
    tried: list[object] = []

    async def accept(raw: Mapping[str, object], *, after_refusal: bool = False) -> None:
        tried.append(raw["update_id"])
        if raw["update_id"] == 6:
            raise NotAccepted
        await mailbox.accept(raw, after_refusal=after_refusal)

    await polled(updates(4, 5, 6, 7), accept=accept, pause=pause, until=pause.begun)
    assert (tried, mailbox.ids, health.last_error) == ([4, 5, 6], [5], "IntakeClosed")


async def test_nobody_waits_for_a_button_that_waits(polled: Polled, api: ScriptedApi) -> None:
    taken: list[object] = []
    is_stored = asyncio.Event()

    async def accept(raw: Mapping[str, object], **_: bool) -> None:
        if raw["update_id"] == 5:
            await is_stored.wait()
        taken.append(raw["update_id"])
        if raw["update_id"] == 7:
            is_stored.set()

    await polled(updates(5, 6, 7, press=5), updates(8), accept=accept)
    assert taken == [6, 7, 5, 8]
    assert offsets(api) == [None, "8", "9"]


async def test_a_button_that_fails_comes_again_alone(polled: Polled, api: ScriptedApi) -> None:
    mailbox = Mailbox(NotAccepted())
    await polled(*[updates(5, 6, press=5)] * 2, accept=mailbox.accept)
    assert (mailbox.ids, offsets(api)) == ([6, 5], [None, None, "7"])


async def test_waits_after_conflicts_and_cuts_grow(polled: Polled, health: TelegramHealth) -> None:
    acts = (CONFLICT, NO_WEBHOOK, "cut", refusal(502, "Bad Gateway"), updates(5))
    pauses = Pauses()
    assert (await polled(*acts, pause=pauses)).ids == [5]
    bounds = [(0.25, 0.5), (0.5, 1.0), (1.0, 2.0)]
    assert all(
        low <= pause <= high for pause, (low, high) in zip(pauses.taken_s, bounds, strict=True)
    )
    assert health.last_error == ""


async def test_without_the_lease_telegram_is_not_polled(
    polled: Polled, api: ScriptedApi, health: TelegramHealth
) -> None:
    pauses = Pauses()
    await polled(lease=ScriptedLease(refusals=2), pause=pauses)
    assert pauses.taken_s == [1.0, 1.0]
    assert not health.standby
    assert len(api.calls) == 1


async def test_on_standby_no_failure_is_reported(polled: Polled, health: TelegramHealth) -> None:
    """The failure now concerns the process that polls."""
    lease, standby = ScriptedLease(), asyncio.Event()

    async def pause(_: float) -> None:
        if health.standby:
            standby.set()
            await asyncio.Event().wait()
        lease.refusals = 1

    await polled(refusal(502, "Bad Gateway"), lease=lease, pause=pause, until=standby)
    assert health.last_error == ""


async def test_stopping_ends_the_poll_and_its_lease(
    polled: Polled, api: ScriptedApi, memory: Memory
) -> None:
    one, other = (memory.store.lease(memory.keys.poller, 60_000) for _ in range(2))
    calls = memory.client.round_trips
    await polled(updates(5), lease=one)
    await api.abandoned.wait()
    assert memory.client.round_trips == calls + 2  # the lease is taken once, and given back
    assert await other.hold()
    assert (one.sure_until, other.sure_until <= monotonic() + 30) == (0, True)
    await memory.client.call("DEL", memory.keys.poller)
    assert await one.hold()
    assert not await other.hold()  # it was paused for too long, and may not poll on
    assert other.sure_until == 0


async def test_the_lease_is_kept_while_a_poll_is_open(polled: Polled) -> None:
    lease = ScriptedLease(ttl_ms=30)
    await polled(lease=lease, until=lease.held_again)


async def test_stopping_while_an_update_is_being_accepted_leaves_it_with_telegram(
    polled: Polled, api: ScriptedApi
) -> None:
    taking = asyncio.Event()

    async def accept(_: object, **__: bool) -> None:
        taking.set()
        await asyncio.Event().wait()

    await polled(updates(5), accept=accept, until=taking)
    assert offsets(api) == [None]
