"""An announcement goes to active private chats that want it, and to each of them at most once."""

import asyncio
from time import time

import pytest

from memory.erasure.jobs import Job
from memory.memory import Memory
from memory.queue.announcements import Announcement, AnnouncementRun
from memory.queue.audience import ACTIVE_S
from memory.store.errors import LeaseLost
from memory.store.keys import Scope
from tests.memory.turns import put

ADA, ANNA, BEN, CLEO = 1, 2, 3, 4
LEASE_S = 5.0
ONE = Announcement("one", ADA, 70, 71, "en")
TWO = Announcement("two", ADA, 80, 81, "en")


async def write(memory: Memory, *people: int, seconds_ago: int = 0) -> None:
    """Let people write in private so long ago."""
    for person in people:
        conversation = Scope.of_chat(person)
        await put(memory, int(time() * 1000) + person, conversation, sender=person)
        index = memory.keys.index_of(conversation)
        await memory.client.call("ZADD", index, int(time()) - seconds_ago, conversation.tag)


async def take(memory: Memory) -> AnnouncementRun:
    run = await memory.announcements.take(LEASE_S)
    assert run
    return run


async def began(memory: Memory, *people: int) -> AnnouncementRun:
    """Return the run of an announcement to these people, all collected."""
    await write(memory, *people)
    assert await memory.announcements.start(ONE)
    run = await take(memory)
    await run.collect(lambda _: True)
    return run


async def lose_lease(memory: Memory) -> None:
    await memory.client.call("DEL", memory.keys.announcement("lease"))


async def counted_by(run: AnnouncementRun) -> dict[str, int]:
    return {outcome: count for outcome, count in (await run.read()).counts.items() if count}


async def reached(memory: Memory) -> set[int]:
    return {chat async for page in memory.audience.pages() for chat in page}


async def test_the_audience_is_active_private_chats_that_want_announcements(
    memory: Memory,
) -> None:
    await write(memory, ADA, ANNA, BEN)
    await write(memory, CLEO, seconds_ago=ACTIVE_S + 60)
    await put(memory, 1, Scope.of_chat(-5), sender=ANNA)
    await put(memory, 2, Scope.of_chat(ANNA, 9), sender=ANNA)
    assert await reached(memory) == {ADA, ANNA, BEN}
    assert await memory.audience.count(lambda chat: chat != BEN, besides=ADA) == 1
    await memory.audience.mute(ANNA, 10)
    assert await memory.audience.is_muted(ANNA)
    assert not await memory.audience.is_muted(BEN)
    assert await reached(memory) == {ADA, BEN}


async def test_mute_is_a_switch_that_a_repeated_turn_does_not_turn_back(memory: Memory) -> None:
    audience = memory.audience
    assert [await audience.toggle_mute(ANNA, update) for update in (1, 1, 2, 2, 3)] == [
        *(True, True),
        *(False, False),
        True,
    ]
    await audience.mute(ANNA, 4)
    assert await audience.is_muted(ANNA)
    export = await memory.exporter.export(Scope.of_chat(ANNA))
    assert b'"announcements_muted": true' in export.content


async def test_who_is_gone_is_not_reachable_until_they_write_again(memory: Memory) -> None:
    run = await began(memory, ANNA)
    await write(memory, ANNA, seconds_ago=60)
    assert await run.next_chat(0, "unknown") == ANNA
    assert await run.next_chat(ANNA, "gone") == 0
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
    for _ in range(2):
        assert await run.next_chat(BEN, "sent") == ANNA
    for _ in range(2):
        assert await run.next_chat(ANNA, "refused") == 0
    assert await counted_by(run) == {"sent": 1, "refused": 1}
    await run.collect(lambda _: True)
    assert await run.next_chat(0, "unknown") == 0
    await run.close()
    assert not await memory.announcements.is_open()
    assert await memory.client.call("EXISTS", memory.keys.announcement("left")) == 0


async def test_the_chat_in_doubt_of_a_dead_worker_is_unknown_and_its_steps_are_refused(
    memory: Memory,
) -> None:
    dead = await began(memory, ANNA, BEN)
    doubt = await dead.next_chat(0, "unknown")
    await lose_lease(memory)
    heir = await take(memory)
    other = await heir.next_chat(0, "sent")
    assert {doubt, other} == {ANNA, BEN}
    for step in (
        dead.next_chat(doubt or 0, "sent"),
        dead.collect(lambda _: True),
        dead.close(),
        dead.renew(),
    ):
        with pytest.raises(LeaseLost):
            await step
    assert await heir.next_chat(other or 0, "sent") == 0
    assert await counted_by(heir) == {"unknown": 1, "sent": 1}


async def test_what_was_not_sent_is_tried_again_at_the_end_and_all_wait_meanwhile(
    memory: Memory,
) -> None:
    run = await began(memory, ANNA, BEN)
    first = await run.next_chat(0, "unknown")
    for _ in range(2):
        assert await run.next_chat(first or 0, "later", wait_s=60) is None
    await memory.client.call("HSET", memory.keys.announcement("job"), "due", 0)
    second = await run.next_chat(0, "unknown")
    assert {first, second} == {ANNA, BEN}
    await run.leave(second or 0, "later")
    await run.release()
    heir = await take(memory)
    assert {await heir.next_chat(0, "unknown")} < {ANNA, BEN}


async def test_one_announcement_at_a_time_and_a_stop_leaves_the_rest_out(memory: Memory) -> None:
    run = await began(memory, ANNA, BEN)
    assert await memory.announcements.start(ONE)  # a repeated press
    assert not await memory.announcements.start(TWO)
    assert await memory.announcements.take(LEASE_S) is None
    chat = await run.next_chat(0, "unknown")
    await memory.announcements.stop("two")
    assert (await run.read()).why_ended == ""
    await memory.announcements.stop("one")
    assert await run.next_chat(chat or 0, "sent") == 0
    progress = await run.read()
    assert (progress.done, progress.total, progress.why_ended) == (1, 2, "stopped")
    await run.close()
    await run.release()
    assert await memory.announcements.start(ONE)  # pressed once more when it is over
    assert not await memory.announcements.is_open()
    assert await memory.announcements.start(TWO)
    assert await memory.announcements.is_open()


async def test_who_is_forgotten_is_sent_nothing_more_and_leaves_no_id(memory: Memory) -> None:
    run = await began(memory, ANNA, BEN)
    await memory.audience.mute(ANNA, 10)
    await memory.client.call("ZADD", memory.keys.announcement("gone"), 1, ANNA)
    erased = Job("job", "forget", ANNA, int(time() * 1000) + 60_000, time(), b"")
    await memory.jobs.start_job(erased)
    await memory.jobs.run_job("job")
    assert not await memory.audience.is_muted(ANNA)
    left = [
        await memory.client.call("ZRANGE", memory.keys.announcement(part), 0, -1)
        for part in ("left", "gone")
    ]
    assert left == [[str(BEN).encode()], []]
    everything = Job("all", "all", 0, int(time() * 1000) + 60_000, time(), b"")
    await memory.jobs.start_job(everything)
    await memory.jobs.run_job("all")
    assert await run.next_chat(0, "unknown") == 0


async def test_twenty_workers_at_once_give_out_each_chat_once(memory: Memory) -> None:
    people = range(100, 130)
    run = await began(memory, *people)
    await run.release()
    given: list[int] = []

    async def work() -> None:
        mine = await memory.announcements.take(LEASE_S)
        chat = await mine.next_chat(0, "unknown") if mine else 0
        while mine and chat:
            given.append(chat)
            chat = await mine.next_chat(chat, "sent")

    await asyncio.gather(*(work() for _ in range(20)))
    assert sorted(given) == list(people)
