"""Intake accepts an update only after it was stored or acted on, and closes under load."""

import asyncio
from dataclasses import replace
from itertools import permutations

import pytest
from structlog.testing import capture_logs

from bot.telegram.errors import (
    Blocked,
    ChatMigrated,
    IntakeClosed,
    NotAccepted,
    OutcomeUnknown,
    Refused,
    UpdateRefused,
)
from bot.telegram.intake import Albums, Backpressure, Intake, RawUpdate
from bot.telegram.updates import (
    EDIT_MARK,
    IncomingMessage,
    StoppedDraft,
    Stranger,
    Update,
    from_bytes,
)
from memory.limits.capacity import Ballast
from memory.queue.mailbox import Entry, Mailbox
from memory.store.client import RedisClient
from memory.store.errors import LoginRefused, StoreFull, StoreRefused, StoreUnavailable
from memory.store.keys import Keys, Scope
from memory.store.store import Scripts, Store
from tests.bot.telegram import raw
from tests.memory.conftest import memory_of
from tests.memory.turns import clear
from tests.valkey import ValkeyServer

ANNAS = Scope.of_chat(7)
KEYS = Keys(raw.ME.id)
MAX_PENDING = 3


class Buttons:
    """Keeps the presses; raises the failure it was given, or returns the message to be stored."""

    def __init__(self, outcome: Exception | IncomingMessage | None = None) -> None:
        self.pressed: list[object] = []
        self._outcome = outcome

    async def act(self, update: object) -> IncomingMessage | None:
        if isinstance(self._outcome, Exception):
            raise self._outcome
        self.pressed.append(update)
        return self._outcome


class HangingButtons(Buttons):
    """Never returns from a press."""

    def __init__(self) -> None:
        super().__init__()
        self.hangs = asyncio.Event()

    async def act(self, update: object) -> None:
        await super().act(update)
        self.hangs.set()
        await asyncio.Event().wait()


def intake_on(store: RedisClient, buttons: Buttons | None = None, *allowed: int) -> Intake:
    stored = store_on(store)
    backpressure = Backpressure(store, KEYS, Ballast(stored), MAX_PENDING)
    act = (buttons or Buttons()).act
    return Intake(raw.reader(*allowed).read, Mailbox(stored), act, backpressure)


def store_on(store: RedisClient) -> Store:
    return Store(store, KEYS, Scripts(store), ttl_s=3600)


async def waiting(store: RedisClient, conversation: Scope = ANNAS) -> list[Entry]:
    members = await store.call("ZRANGE", KEYS.scope(conversation).mailbox, 0, -1)
    return [Entry.of_member(member) for member in members]


async def wake(store: RedisClient, times: int) -> None:
    for _ in range(times):
        await store.call("XADD", KEYS.ready_queue, "*", "c", "c:7:0")


async def test_a_message_waits_in_its_conversation_as_it_was_read(store: RedisClient) -> None:
    update = raw.message("Hello")
    await intake_on(store).accept(update)
    (entry,) = await waiting(store)
    assert (entry.update_id, entry.sender_id, entry.is_alone) == (1, 7, False)
    assert from_bytes(entry.body) == raw.inbound(update)
    assert await store.call("XLEN", KEYS.ready_queue) == 1


async def test_a_command_has_a_turn_and_a_topic_a_mailbox_of_its_own(store: RedisClient) -> None:
    topic = {"message_thread_id": 5, "is_topic_message": True}
    await intake_on(store).accept(raw.message("/help", chat=raw.GROUP, **topic))
    found = await waiting(store, Scope.of_chat(-1005, 5))
    assert [entry.is_alone for entry in found] == [True]


async def test_what_a_stranger_writes_is_not_stored(store: RedisClient) -> None:
    await intake_on(store, buttons := Buttons(), 8).accept(raw.message("Let me in"))
    assert [type(each) for each in buttons.pressed] == [Stranger]
    assert await waiting(store) == []


async def test_a_forwarded_message_may_follow_a_comment_later(store: RedisClient) -> None:
    origin = {"type": "hidden_user", "date": 1, "sender_user_name": "Ben"}
    await intake_on(store).accept(raw.message("I live in Oslo", forward_origin=origin))
    assert [entry.is_grouped for entry in await waiting(store)] == [True]


def album_photo(update_id: int, caption: str = "", **fields: object) -> dict[str, object]:
    marked = [{"type": "mention", "offset": 0, "length": 12}] if caption else []
    told = {"caption": caption, "caption_entities": marked, "media_group_id": "11"}
    where = {"chat": raw.GROUP, "message_id": update_id}
    update = raw.message("", **where | told | {"photo": raw.PHOTO} | fields)
    return {**update, "update_id": update_id}


FIRST = raw.inbound(album_photo(1, "@Ricordo_bot"))
SECOND = raw.inbound(album_photo(2, "@Ricordo_bot look"))


class Keeps:
    """Keeps the numbers of pictures; the first one only after these failures."""

    def __init__(self, *failures: Exception) -> None:
        self.kept: list[int] = []
        self._failures = [*failures]

    async def keep(self, message: IncomingMessage) -> None:
        if message.update_id == 1 and self._failures:
            raise self._failures.pop()
        self.kept.append(message.update_id)


@pytest.mark.parametrize("mentions_at", [1, 2, 3])
async def test_pictures_of_our_album_belong_to_it(store: RedisClient, mentions_at: int) -> None:
    """Only one has the mention; the others come before or after it, also in a later process."""
    intake, group = intake_on(store), Scope.of_chat(-1005)
    for update_id in (1, 2, 3):
        caption = "@Ricordo_bot look" if update_id == mentions_at else ""
        await intake.accept(album_photo(update_id, caption))
    await intake_on(store).accept(album_photo(4))
    assert [entry.update_id for entry in await waiting(store, group)] == [1, 2, 3, 4]
    assert all(entry.is_grouped for entry in await waiting(store, group))
    for other in ({"media_group_id": "12"}, {"from": {**raw.ANNA, "id": 8}}):
        await intake.accept(album_photo(5, **other))
    assert len(await waiting(store, group)) == 4


async def test_pictures_of_a_process_that_stops_find_a_mention_that_another_one_takes(
    store: RedisClient,
) -> None:
    intake = intake_on(store)
    await intake.accept(album_photo(1))
    stopping = asyncio.create_task(intake.stop())
    await asyncio.sleep(0)
    await intake_on(store).accept(album_photo(2, "@Ricordo_bot look"))
    await stopping
    assert [entry.update_id for entry in await waiting(store, FAMILY)] == [1, 2]


async def test_an_album_that_does_not_address_us_is_stored_nowhere(store: RedisClient) -> None:
    """It waits for a few seconds in the process, which does not tell any store of it."""
    intake = intake_on(store)
    for update_id in (1, 2):
        await intake.accept(album_photo(update_id))
    assert await store.call("KEYS", "*") == []
    keeps = Keeps()
    albums = Albums(Mailbox(store_on(store)), keeps.keep, held_s=0)
    await albums.join(FIRST)
    await asyncio.gather(*albums.waiting)
    await albums.begin(SECOND)
    assert keeps.kept == [2]


async def test_what_could_not_be_stored_of_an_album_waits_on(store: RedisClient) -> None:
    keeps = Keeps(StoreUnavailable("away"))
    albums = Albums(Mailbox(store_on(store)), keeps.keep)
    await albums.join(FIRST)
    with pytest.raises(StoreUnavailable):
        await albums.begin(SECOND)
    await albums.begin(SECOND)  # Telegram delivers it again
    assert keeps.kept == [2, 2, 1]


async def test_a_stop_acts_at_once_unstored_even_while_intake_is_closed(store: RedisClient) -> None:
    intake = intake_on(store, buttons := Buttons())
    pressed = {"chat": {"id": 7}, "draft_id": 3, "message_thread_id": 40}
    await intake.accept({"update_id": 2, "stopped_message_generation": pressed}, after_refusal=True)
    await intake.accept(raw.message("/stop") | {"update_id": 4}, after_refusal=True)
    stopped, command = buttons.pressed
    assert stopped == StoppedDraft(2, 7, 40, 3)
    assert isinstance(command, IncomingMessage)
    assert await waiting(store) == []


STOPS: tuple[object, ...] = {}, {"chat": {"id": 7}}, {"chat": 7, "draft_id": 1}, "?"
FILES = {"file_size": 10**300}, {"file_size": "9"}, {"mime_type": ["x"]}
UNREADABLE: list[RawUpdate] = [{"stopped_message_generation": stop} for stop in STOPS]
UNREADABLE += [raw.message(None, voice={**raw.FILE, "duration": 3, **file}) for file in FILES]
NOBODY = raw.said("Hello", {**raw.ANNA, "id": 10**300})
UNREADABLE += [raw.message("Who?", reply_to_message=NOBODY)]


@pytest.mark.parametrize("update", UNREADABLE)
async def test_an_unreadable_update_is_skipped(store: RedisClient, update: RawUpdate) -> None:
    await intake_on(store, buttons := Buttons()).accept({**update, "update_id": 2})
    assert (buttons.pressed, await waiting(store)) == ([], [])


async def test_a_press_is_acted_on_at_once_and_other_talk_is_not_stored(store: RedisClient) -> None:
    intake = intake_on(store, buttons := Buttons())
    await intake.accept(raw.pressed())
    await intake.accept(raw.message("plain talk", chat=raw.GROUP))
    assert buttons.pressed == [raw.press(raw.pressed())]
    assert await store.call("DBSIZE") == 0


async def test_a_message_to_a_full_mailbox_is_dropped(
    store: RedisClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it were refused, the offset of a poller would stay there and delay everybody."""
    monkeypatch.setattr("memory.queue.mailbox.MAX_UPDATES", 1)
    intake = intake_on(store)
    await intake.accept(raw.message("one"))
    await intake.accept(raw.message("two") | {"update_id": 2})
    assert [entry.update_id for entry in await waiting(store)] == [1]


async def test_a_reply_to_our_question_passes_no_closed_intake(store: RedisClient) -> None:
    """It may be a message after all, which is stored then."""
    await wake(store, MAX_PENDING + 1)
    question = raw.said(f"{EDIT_MARK} What is right?", raw.US)
    buttons = Buttons(raw.inbound(raw.message("Her name is Ada")))
    reply = raw.message("Her name is Ada", reply_to_message=question)
    with pytest.raises(IntakeClosed):
        await intake_on(store, buttons).accept(reply)
    assert (await waiting(store), len(buttons.pressed)) == ([], 1)


async def test_after_a_refusal_only_commands_and_buttons_are_accepted(store: RedisClient) -> None:
    intake = intake_on(store, buttons := Buttons())
    with pytest.raises(IntakeClosed):
        await intake.accept(raw.message("Hello"), after_refusal=True)
    await intake.accept(raw.message("/clear") | {"update_id": 2}, after_refusal=True)
    await intake.accept(raw.pressed(), after_refusal=True)
    assert [entry.update_id for entry in await waiting(store)] == [2]
    assert len(buttons.pressed) == 1


async def test_a_process_accepts_a_bounded_number_of_updates_at_once(
    store: RedisClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.telegram.intake._MAX_CONCURRENT", 1)
    intake = intake_on(store, buttons := HangingButtons())
    hanging = asyncio.create_task(intake.accept(raw.pressed()))
    await buttons.hangs.wait()
    with pytest.raises(NotAccepted):
        await intake.accept(raw.message("Hello"))
    hanging.cancel()
    await asyncio.gather(hanging, return_exceptions=True)
    await intake.accept(raw.message("Hello"))
    assert len(await waiting(store)) == 1


async def test_without_redis_the_update_stays_with_telegram(own_server: ValkeyServer) -> None:
    store = await RedisClient.open(own_server.url)
    own_server.kill()
    with pytest.raises(NotAccepted):
        await intake_on(store).accept(raw.message("Hello"))
    await store.close()


@pytest.mark.parametrize(
    "failure",
    [StoreUnavailable(), LoginRefused(), StoreFull(), OutcomeUnknown()],
    ids=["Redis away", "its password changed", "Redis full", "Telegram silent"],
)
async def test_a_failed_press_comes_again(store: RedisClient, failure: Exception) -> None:
    with pytest.raises(NotAccepted) as refused:
        await intake_on(store, Buttons(failure)).accept(raw.pressed())
    # What fails in one chat at Telegram makes polling wait no longer for others.
    assert (refused.type is UpdateRefused) == isinstance(failure, OutcomeUnknown)


@pytest.mark.parametrize(
    "failure",
    [
        StoreRefused("wrong type"),
        Refused("other"),
        Blocked("kicked"),
        ChatMigrated(-1009),
        RuntimeError("an error of ours"),
    ],
    ids=lambda failure: type(failure).__name__,
)
async def test_a_press_that_never_works_is_dropped(store: RedisClient, failure: Exception) -> None:
    with capture_logs() as logged:
        await intake_on(store, Buttons(failure)).accept(raw.pressed())
    (line,) = logged
    is_ours = isinstance(failure, RuntimeError)
    assert line["event"] == ("update failed" if is_ours else "update dropped")
    assert line.get("reason") == (None if is_ours else type(failure).__name__)
    assert line["update"] == 2


async def test_a_mistake_of_ours_with_one_message_holds_up_no_other(store: RedisClient) -> None:
    intake = intake_on(store)
    intake.mailbox = None  # type: ignore[assignment]
    with pytest.raises(UpdateRefused):
        await intake.accept(raw.message("Hello"))


async def test_only_an_update_that_is_refused_alone_for_a_minute_is_dropped(
    store: RedisClient,
) -> None:
    clock, reads = [100.0], raw.reader().read

    def read(update: RawUpdate) -> Update:
        assert update["update_id"] != 2
        return reads(update)

    intake = replace(intake_on(store), read=read, now=lambda: clock[0])
    refused = raw.message("Hello") | {"update_id": 2}
    for _ in range(3):
        with pytest.raises(UpdateRefused):
            await intake.accept(refused)
        await intake.accept(raw.message("plain talk", chat=raw.GROUP))
        if clock[0] == 150:  # one early message does not show that others are taken now
            await intake.accept(raw.message("Hello") | {"update_id": 4})
        clock[0] += 50
    await intake.accept(raw.message("Hello") | {"update_id": 3})
    await intake.accept(refused)


async def test_an_update_that_takes_too_long_stays_with_telegram(
    store: RedisClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.telegram.intake._MAX_ACCEPT_S", 0.01)
    with pytest.raises(NotAccepted):
        await intake_on(store, buttons := HangingButtons()).accept(raw.pressed())
    assert len(buttons.pressed) == 1


FAMILY = Scope.of_chat(-1005)


def version(update_id: int, text: str, after_s: int = 0) -> dict[str, object]:
    """Return the update of a message to a group, or of its edit so many seconds later."""
    message = raw.message(text, chat=raw.GROUP, edit_date=1_700_000_000 + after_s)["message"]
    return {"update_id": update_id, "edited_message" if after_s else "message": message}


async def known_for_long(store: RedisClient) -> None:
    await store.call("HSET", KEYS.scope(FAMILY).meta, "known_since", 0)


@pytest.mark.parametrize("first", ["Who is it?", "@Ricordo_bot Who is it?"])
async def test_an_edit_may_address_us_and_one_message_is_asked_once_in_whatever_order_it_comes(
    store: RedisClient, first: str
) -> None:
    """Each update may be delivered twice."""
    edits = version(2, "@Ricordo_bot Who was it?", 60), version(3, "@Ricordo_bot And now?", 61)
    for order in set(permutations([0, 0, 1, 1, 2, 2])):
        await store.call("FLUSHALL")
        await known_for_long(store)
        intake = intake_on(store)
        intake.backpressure.max_pending = len(order)
        for number in order:
            await intake.accept((version(1, first), *edits)[number])
        found = [from_bytes(each.body) for each in await waiting(store, FAMILY)]
        assert [each.text for each in found if each.kind == "text"] == ["And now?"], order


@pytest.mark.parametrize("why", ["answered", "erased", "later", "in doubt"])
@pytest.mark.parametrize("first", ["Who is it?", "@Ricordo_bot Who is it?"])
async def test_an_edit_asks_nothing_if_its_message_may_have_been_asked(
    store: RedisClient, why: str, first: str
) -> None:
    """Its message was taken in before, or 15 minutes have passed, or ids are not known for long."""
    if why != "in doubt":
        await known_for_long(store)
    intake = intake_on(store)
    await intake.accept(version(1, first))
    await store.call("DEL", KEYS.scope(FAMILY).mailbox)
    if why == "erased":
        await clear(memory_of(store), 1, FAMILY)
        await known_for_long(store)
    await intake.accept(version(2, "@Ricordo_bot Who was it?", 901 if why == "later" else 1))
    is_new = first == "Who is it?" and why in ("answered", "erased")
    kinds = [from_bytes(each.body).kind for each in await waiting(store, FAMILY)]
    assert kinds == ["text" if is_new else "edit"]


async def test_a_group_that_moved_to_itself_or_back_stays_where_it_is(store: RedisClient) -> None:
    for number, (old, new) in enumerate([(-5, -5), (-6, -1006), (-1006, -6)]):
        here = {"id": old, "type": "group", "title": "Club"}
        update = raw.message(None, migrate_to_chat_id=new, chat=here)
        await intake_on(store).accept({**update, "update_id": number})
    for number, chat in enumerate([-5, -6, -1006], 10):
        here = {"id": chat, "type": "group", "title": "Club"}
        update = raw.message("@Ricordo_bot hi", chat=here)
        await intake_on(store).accept({**update, "update_id": number})
    found = [await waiting(store, Scope.of_chat(chat)) for chat in (-5, -6)]
    assert [[each.update_id for each in entries] for entries in found] == [[10], [11, 12]]


async def test_when_redis_is_full_the_ballast_is_freed_and_only_commands_and_buttons_are_accepted(
    own_server: ValkeyServer,
) -> None:
    store = await RedisClient.open(own_server.url)
    intake = intake_on(store, buttons := Buttons())
    ballast = intake.backpressure.ballast
    await ballast.allocate(2**22)
    own_server.ask("CONFIG SET maxmemory 1")
    with pytest.raises(IntakeClosed) as refusal:
        await intake.accept(raw.message("Hello"))
    assert isinstance(refusal.value.__cause__, StoreFull)
    assert ballast.is_released

    own_server.ask("CONFIG SET maxmemory 0")
    with pytest.raises(IntakeClosed):
        await intake.accept(raw.message("Hello"))
    await intake.accept(raw.message("/clear") | {"update_id": 2})
    await intake.accept(raw.pressed())
    assert [entry.update_id for entry in await waiting(store)] == [2]
    assert len(buttons.pressed) == 1
    await store.close()


async def test_backpressure_begins_beyond_the_bound_and_ends_when_the_queue_is_shorter(
    store: RedisClient,
) -> None:
    clock, message = [100.0], raw.inbound(raw.message("Hello"))
    backpressure = Backpressure(store, KEYS, Ballast(store_on(store)), 2, lambda: clock[0])
    await wake(store, 2)
    await backpressure.check(message)
    await wake(store, 1)
    trips = store.round_trips
    await backpressure.check(message)
    assert store.round_trips == trips, "one check serves a second"
    clock[0] += 1
    with pytest.raises(IntakeClosed):
        await backpressure.check(message)
    await store.call("DEL", KEYS.ready_queue)
    clock[0] += 1
    await backpressure.check(message)
