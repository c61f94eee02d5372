"""An announcement goes to active private chats that want it, and to each of them at most once."""

import asyncio
from time import time

import pytest

from bot.commands.notices import Mute, set_mute
from bot.features.broadcast.announcements import (
    ACTIVE_S,
    Announcement,
    AnnouncementRun,
    Announcements,
    Outcome,
    Pause,
)
from bot.features.broadcast.feature import feature
from memory.erasure.jobs import Job, JobKind
from memory.erasure.questions import NotConfirmed
from memory.memory import Memory
from memory.scopes.fields import read_field
from memory.scopes.sources import Erased
from memory.store.errors import LeaseLost
from memory.store.keys import Scope
from tests.bot.features.services import services_of
from tests.bot.telegram import raw
from tests.memory.turns import put

ADA, ANNA, BEN, CLEO = 1, 2, 3, 4
LEASE_S = 30.0
ONE = Announcement("one", ADA, 70, 71, "en")
TWO = Announcement("two", ADA, 80, 81, "en")


def announcements_of(memory: Memory) -> Announcements:
    return Announcements(memory.store)


def key(memory: Memory, part: str) -> str:
    return announcements_of(memory).key(part)


async def write(memory: Memory, *people: int, seconds_ago: int = 0) -> None:
    """Let people write in private so long ago."""
    for person in people:
        conversation = Scope.of_chat(person)
        await put(memory, int(time() * 1000) + person, conversation, sender=person)
        index = memory.keys.index_of(conversation)
        await memory.client.call("ZADD", index, int(time()) - seconds_ago, conversation.tag)


async def take(memory: Memory) -> AnnouncementRun:
    run = await announcements_of(memory).take(LEASE_S)
    assert run
    return run


async def began(memory: Memory, *people: int) -> AnnouncementRun:
    """Return the run of an announcement to these people, all collected."""
    await write(memory, *people)
    assert await announcements_of(memory).start(ONE)
    run = await take(memory)
    await run.collect(lambda _: True)
    return run


async def ended(run: AnnouncementRun, chat: int | None, outcome: Outcome) -> int | None:
    """Let a request to a chat begin and end; return the next chat."""
    assert chat
    assert await run.open_chat(chat)
    return await run.next_chat(chat, outcome)


async def lose_lease(memory: Memory) -> None:
    await memory.client.call("DEL", key(memory, "lease"))


async def counted_by(run: AnnouncementRun) -> dict[str, int]:
    return {outcome: count for outcome, count in (await run.read()).counts.items() if count}


async def reached(memory: Memory) -> set[int]:
    return {chat async for page in announcements_of(memory).pages() for chat in page}


async def test_the_audience_is_active_private_chats_that_want_announcements(memory: Memory) -> None:
    await write(memory, ADA, ANNA, BEN)
    await write(memory, CLEO, seconds_ago=ACTIVE_S + 60)
    await put(memory, 1, Scope.of_chat(-5), sender=ANNA)
    await put(memory, 2, Scope.of_chat(ANNA, 9), sender=ANNA)
    assert await reached(memory) == {ADA, ANNA, BEN}
    assert await announcements_of(memory).count(lambda chat: chat != BEN, besides=ADA) == 1
    await set_mute(memory.scopes, ANNA, 10, is_muted=True)
    assert await announcements_of(memory).is_muted(ANNA)
    assert not await announcements_of(memory).is_muted(BEN)
    assert await reached(memory) == {ADA, BEN}


async def test_a_repeated_update_does_not_mute_again(memory: Memory) -> None:
    for update, is_muted, then in ((1, True, True), (2, False, False), (2, True, False)):
        await set_mute(memory.scopes, ANNA, update, is_muted=is_muted)
        assert await announcements_of(memory).is_muted(ANNA) is then
    await set_mute(memory.scopes, ANNA, 4, is_muted=True)
    assert await announcements_of(memory).is_muted(ANNA)
    [exported] = feature(services_of(memory)).exports
    facts = await memory.scopes.read(Scope.of_person(ANNA))
    assert await exported(Scope.of_chat(ANNA), facts) == {"announcements_muted": True}


def test_what_a_person_wants_survives_an_erasure_of_words() -> None:
    mute = Mute(is_muted=True, by_update=7)
    assert read_field(mute.name, mute.stored) == mute
    assert mute.without(Erased("c:3:0", [1])) == mute


async def test_who_is_gone_is_not_reachable_until_they_write_again(memory: Memory) -> None:
    run = await began(memory, ANNA)
    await write(memory, ANNA, seconds_ago=60)
    assert await run.next_chat(0, "unknown") == ANNA
    assert await ended(run, ANNA, "gone") == 0
    assert await reached(memory) == set()
    await write(memory, ANNA)
    assert await reached(memory) == {ANNA}


async def test_each_chat_is_given_once_newest_first_and_a_repeated_step_changes_nothing(
    memory: Memory,
) -> None:
    await write(memory, ANNA, seconds_ago=60)
    run = await began(memory, BEN)
    for _ in range(2):
        assert await run.next_chat(0, "unknown") == BEN
    assert await run.next_chat(BEN, "sent") == BEN  # no request was made
    for _ in range(2):
        assert await run.open_chat(BEN)
    for _ in range(2):
        assert await run.next_chat(BEN, "sent") == ANNA
    assert not await run.open_chat(BEN)
    assert await run.open_chat(ANNA)
    for _ in range(2):
        assert await run.next_chat(ANNA, "refused") == 0
    assert await counted_by(run) == {"sent": 1, "refused": 1}
    await run.collect(lambda _: True)
    assert await run.next_chat(0, "unknown") == 0
    await run.close()
    assert not await announcements_of(memory).is_open()
    assert await memory.client.call("EXISTS", key(memory, "left")) == 0


async def test_a_dead_workers_chat_in_doubt_is_unknown_and_it_is_refused(memory: Memory) -> None:
    dead = await began(memory, ANNA, BEN)
    doubt = await dead.next_chat(0, "unknown")
    assert doubt
    assert await dead.open_chat(doubt)
    await lose_lease(memory)
    heir = await take(memory)
    other = await heir.next_chat(0, "sent")
    assert {doubt, other} == {ANNA, BEN}
    for step in (
        dead.next_chat(doubt, "sent"),
        dead.open_chat(other or 0),
        dead.collect(lambda _: True),
        dead.close(),
        dead.lease.renew(),
    ):
        with pytest.raises(LeaseLost):
            await step
    assert await ended(heir, other, "sent") == 0
    assert await counted_by(heir) == {"unknown": 1, "sent": 1}


async def test_a_chat_that_waits_comes_at_the_end_and_when_its_time_comes(memory: Memory) -> None:
    run = await began(memory, ANNA, BEN)
    first = await run.next_chat(0, "unknown") or 0
    for _ in range(2):
        second = await run.next_chat(first, "later", Pause(60))
    assert {first, second} == {ANNA, BEN}
    assert await ended(run, second, "sent") is None
    [score] = await memory.client.call("ZMSCORE", key(memory, "left"), first)
    assert 50_000 < -score - time() * 1000 < 61_000
    await memory.client.call("ZADD", key(memory, "left"), -1, first)
    assert await run.next_chat(0, "unknown") == first


async def test_one_chats_ban_stops_the_others_shortly_and_two_bans_stop_all(memory: Memory) -> None:
    run, banned = await began(memory, ANNA, BEN, CLEO), 0

    async def pause_of_all() -> float:
        due = await memory.client.call("HGET", key(memory, "job"), "due")
        await memory.client.call("HSET", key(memory, "job"), "due", 0)
        return int(due) / 1000 - time()

    for name, longest_s in (("one", 4), ("one again", 4), ("two", 601)):
        chat = await run.next_chat(0, "unknown")
        if name == "one again":  # it is tried too early
            await memory.client.call("ZADD", key(memory, "left"), 2**40, banned)
            chat = await run.next_chat(0, "unknown")
            assert chat == banned
        assert chat
        banned = chat
        assert await run.open_chat(chat)
        assert await run.next_chat(chat, "later", Pause(600, "ban")) is None
        pause_s = await pause_of_all()
        assert longest_s / 2 < pause_s < longest_s, name
    last = await run.next_chat(0, "unknown")
    assert await run.next_chat(last or 0, "later", Pause(30, "away")) is None
    assert 15 < await pause_of_all() < 31


async def test_a_chat_that_is_forgotten_before_its_request_gets_none(memory: Memory) -> None:
    run = await began(memory, ANNA)
    assert await run.next_chat(0, "unknown") == ANNA
    await memory.client.call("ZREM", key(memory, "left"), ANNA)
    assert not await run.open_chat(ANNA)
    assert await run.next_chat(ANNA, "later") == 0
    assert await counted_by(run) == {}


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [("forget", "later"), ("all", "later"), ("forget", "gone"), ("all", "sent")],
)
async def test_who_is_forgotten_during_the_request_leaves_no_id(
    memory: Memory, kind: JobKind, outcome: Outcome
) -> None:
    run = await began(memory, ANNA, BEN)
    chat = await run.next_chat(0, "unknown")
    assert chat
    assert await run.open_chat(chat)
    job = Job("job", kind, 0 if kind == "all" else chat, 1, time(), b"")
    await announcements_of(memory).forget(job)
    left = {ANNA, BEN} - {chat} if kind == "forget" else {0}
    assert {await run.next_chat(chat, outcome, Pause(60, "ban"))} == left
    job_fields = await memory.client.call("HKEYS", key(memory, "job"))
    assert not {b"open", b"ban"} & {*job_fields}
    assert await memory.client.call("ZSCORE", key(memory, "left"), chat) is None
    assert not await memory.client.call("EXISTS", key(memory, "gone"))
    assert await counted_by(run) == {}


async def test_one_announcement_at_a_time_and_a_stop_leaves_the_rest_out(memory: Memory) -> None:
    run = await began(memory, ANNA, BEN)
    assert await announcements_of(memory).start(ONE)  # a repeated press
    assert not await announcements_of(memory).start(TWO)
    assert await announcements_of(memory).take(LEASE_S) is None
    chat = await run.next_chat(0, "unknown")
    await announcements_of(memory).stop("two")
    assert (await run.read()).why_ended == ""
    await announcements_of(memory).stop("one")
    await memory.client.call("HSET", key(memory, "job"), "due", 2**42)  # also while all wait
    assert await ended(run, chat, "sent") == 0
    progress = await run.read()
    assert (progress.done, progress.total, progress.why_ended) == (1, 2, "stopped")
    await run.close()
    await run.lease.release()
    with pytest.raises(LeaseLost):  # a worker that looked just before
        await (await take(memory)).read()
    await lose_lease(memory)
    assert await announcements_of(memory).start(ONE)  # pressed once more when it is over
    assert not await announcements_of(memory).is_open()
    assert await announcements_of(memory).start(TWO)
    assert await announcements_of(memory).is_open()


async def test_a_process_that_dies_behind_the_start_leaves_no_question(memory: Memory) -> None:
    """A later press of the same button would send it to everybody once more."""
    here = Scope.of_chat(7)
    pressed = raw.press(raw.pressed(message=raw.said("Send it?", raw.US)))
    await memory.questions.ask(here, "broadcast", pressed.sender.id, "70", ONE.id)
    assert await announcements_of(memory).start(ONE)
    [command] = feature(services_of(memory)).commands
    assert await command.buttons["broadcast"](pressed, here, ONE.id) == ()
    with pytest.raises(NotConfirmed):
        await memory.questions.check(here, ONE.id, "broadcast", pressed.sender.id)


async def test_who_is_forgotten_is_sent_nothing_more_and_leaves_no_id(memory: Memory) -> None:
    run = await began(memory, ANNA, BEN)
    await memory.client.call("HSET", key(memory, "job"), "ban", f"{ANNA}|1")
    await set_mute(memory.scopes, ANNA, 10, is_muted=True)
    await memory.client.call("ZADD", key(memory, "gone"), 1, ANNA)
    erased = Job("job", "forget", ANNA, int(time() * 1000) + 60_000, time(), b"")
    memory.jobs.forgets += feature(services_of(memory)).forgets
    await memory.jobs.start_job(erased)
    await memory.jobs.run_job("job")
    assert not await announcements_of(memory).is_muted(ANNA)
    left = [await memory.client.call("ZRANGE", key(memory, of), 0, -1) for of in ("left", "gone")]
    assert left == [[str(BEN).encode()], []]
    assert not await memory.client.call("HEXISTS", key(memory, "job"), "ban")
    await memory.jobs.start_job(Job("all", "all", 0, int(time() * 1000) + 60_000, time(), b""))
    await memory.jobs.run_job("all")
    assert await run.next_chat(0, "unknown") == 0


async def test_twenty_workers_at_once_give_out_each_chat_once(memory: Memory) -> None:
    people = range(100, 130)
    run = await began(memory, *people)
    await run.lease.release()
    given: list[int] = []

    async def work() -> None:
        mine = await announcements_of(memory).take(LEASE_S)
        chat = await mine.next_chat(0, "unknown") if mine else 0
        while mine and chat:
            given.append(chat)
            chat = await ended(mine, chat, "sent")

    await asyncio.gather(*(work() for _ in range(20)))
    assert sorted(given) == list(people)
