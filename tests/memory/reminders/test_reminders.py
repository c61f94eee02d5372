"""Reminders are stored with their turn, and one worker at a time gets each one that is due."""

import time
from dataclasses import replace

import orjson
import pytest

from memory.erasure.jobs import Job
from memory.memory import Memory
from memory.queue.open_turn import Closing
from memory.reminders.reminder import Reminder, ReminderChanges
from memory.reminders.reminders import TakenReminder
from memory.scopes.delta import Cursor
from memory.store.errors import LeaseLost
from memory.store.keys import Scope
from tests.memory.turns import ANN, BOB, GROUP, HERE, exchange_of, put, take

LEASE_S = 30.0
NEW_YEAR = 4_102_444_800.0


def reminder(text: str = "Call Ben", *, due: float = NEW_YEAR, person: int = ANN) -> Reminder:
    return Reminder(person, text, at="2100-01-01T00:00", zone="UTC", due=due, chat_id=7)


async def store(
    memory: Memory, *reminders: Reminder, conversation: Scope = HERE, update_id: int = 1
) -> None:
    """Close a turn whose tools set these reminders."""
    await put(memory, update_id, conversation, sender=reminders[0].person)
    turn = await take(memory, conversation)
    await memory.turns.write_outbox(turn, b"[]")
    changes = ReminderChanges(list(reminders)).encode()
    closing = Closing(reminders=changes)
    await memory.turns.commit(turn, exchange_of(turn), Cursor(), closing=closing)


async def take_due(memory: Memory, conversation: Scope = HERE) -> TakenReminder | None:
    [(where, id_)] = await memory.reminders.find_due(8)
    assert where == conversation
    return await memory.reminders.take(where, id_, LEASE_S)


async def let_the_lease_end(memory: Memory, id_: str) -> None:
    name = memory.keys.scope(HERE).reminders
    stored = (await memory.client.call("HGET", name, id_)).split(b"|", 6)
    stored[4] = b"0"
    await memory.client.call("HSET", name, id_, b"|".join(stored))
    await memory.client.call("ZADD", memory.keys.reminders, 0, f"{HERE.tag}|{id_}")


async def index(memory: Memory) -> dict[bytes, float]:
    found = await memory.client.call("ZRANGE", memory.keys.reminders, 0, -1, "WITHSCORES")
    return dict(found)


async def test_a_turn_stores_what_its_tools_set_and_removes_what_they_cancel(
    memory: Memory,
) -> None:
    later, sooner = reminder(), replace(reminder('Tea\n{"|"}'), due=NEW_YEAR - 1.5)
    await store(memory, later, sooner)
    assert await memory.reminders.list_open(HERE, ANN) == [sooner, later]
    assert await memory.reminders.list_open(HERE, BOB) == []
    assert await memory.reminders.find_due(8) == []
    await put(memory, 2)
    turn = await take(memory)
    await memory.turns.write_outbox(turn, b"[]")
    closing = Closing(reminders=ReminderChanges(cancelled=[later]).encode())
    await memory.turns.commit(turn, exchange_of(turn), Cursor(), closing=closing)
    assert await memory.reminders.list_open(HERE) == [sooner]


async def test_one_worker_gets_a_due_reminder_until_its_lease_ends(memory: Memory) -> None:
    due = reminder(due=time.time() - 1)
    await store(memory, due)
    first = await take_due(memory)
    assert first
    assert first.reminder.text == due.text
    assert await take_due(memory) is None  # the index now says when the lease ends
    assert await memory.reminders.find_due(8) == []
    await memory.reminders.mark_sending(first, LEASE_S)
    await let_the_lease_end(memory, due.id)
    second = await take_due(memory)
    assert second
    assert second.reminder.sends == 1
    for step in (memory.reminders.mark_sending(first, 1), memory.reminders.close(first, 0)):
        with pytest.raises(LeaseLost):
            await step
    await memory.reminders.close(second, 0)
    await memory.reminders.close(second, 0)  # the answer of the first call was lost
    assert await memory.reminders.list_open(HERE) == []
    assert await index(memory) == {}


async def test_a_repeating_reminder_waits_for_its_next_time_and_counts_its_sends_again(
    memory: Memory,
) -> None:
    await store(memory, replace(reminder(due=time.time() - 1), rule="0 9 * * *"))
    taken = await take_due(memory)
    assert taken
    await memory.reminders.mark_sending(taken, LEASE_S)
    await memory.reminders.close(taken, NEW_YEAR)
    [waiting] = await memory.reminders.list_open(HERE)
    assert (waiting.due, waiting.sends, waiting.id) == (NEW_YEAR, 0, taken.reminder.id)
    assert await memory.reminders.find_due(8) == []
    assert len(await index(memory)) == 1


async def test_a_postponed_reminder_keeps_its_due_time_and_its_count(memory: Memory) -> None:
    await store(memory, reminder(due=time.time() - 1))
    taken = await take_due(memory)
    assert taken
    await memory.reminders.mark_sending(taken, LEASE_S)
    await memory.reminders.postpone(taken, 60)
    [waiting] = await memory.reminders.list_open(HERE)
    assert (round(waiting.due), waiting.sends) == (round(taken.reminder.due), 0)
    [at] = (await index(memory)).values()
    assert 50_000 < at - time.time() * 1000 < 61_000


async def test_the_field_decides_when_the_index_is_wrong(memory: Memory) -> None:
    await store(memory, reminder())
    [member] = await index(memory)
    await memory.client.call("ZADD", memory.keys.reminders, 0, member, 0, f"{HERE.tag}|0badcafe")
    for where, id_ in await memory.reminders.find_due(8):
        assert await memory.reminders.take(where, id_, LEASE_S) is None
    [(left, at)] = (await index(memory)).items()
    assert left == member
    assert at - time.time() * 1000 < 86_400_001  # looked at again in a day


async def test_a_reminder_that_nobody_agreed_to_is_not_open_and_goes_after_an_hour(
    memory: Memory,
) -> None:
    asked, other = reminder(due=0), reminder(due=0)
    await store(memory, asked, other)
    assert await memory.reminders.list_open(HERE) == []
    assert await memory.reminders.count_open(ANN) == 0
    agreed = asked.opened(NEW_YEAR)
    assert await memory.reminders.confirm(HERE, agreed)
    assert await memory.reminders.confirm(HERE, asked.opened(1))  # a repeat changes nothing
    assert await memory.reminders.list_open(HERE) == [agreed]
    assert await memory.reminders.take(HERE, other.id, LEASE_S) is None
    assert not await memory.reminders.confirm(HERE, other.opened(NEW_YEAR))


async def test_reminders_are_counted_over_all_conversations_of_a_person(memory: Memory) -> None:
    await store(memory, reminder(), reminder())
    await store(memory, reminder(), reminder(person=BOB), conversation=GROUP, update_id=2)
    assert [await memory.reminders.count_open(person) for person in (ANN, BOB)] == [3, 0]


async def test_reminders_go_with_the_message_in_which_they_were_asked_for(memory: Memory) -> None:
    await store(memory, reminder("first"))
    await store(memory, reminder("second"), update_id=2)
    await memory.forgetting.erase_messages(HERE, [1, 2], "receipt")
    assert [each.text for each in await memory.reminders.list_open(HERE)] == ["second"]


async def test_reminders_do_not_expire_with_their_conversation(memory: Memory) -> None:
    await store(memory, reminder())
    keys = memory.keys.scope(HERE)
    assert await memory.client.call("TTL", keys.reminders) == -1
    assert await memory.client.call("TTL", keys.log) > 0


async def test_an_export_has_the_reminders_and_the_zone(memory: Memory) -> None:
    await store(memory, replace(reminder("Tea"), rule="0 9 * * *"), reminder("not yet", due=0))
    await memory.time_zones.store_zone(ANN, "Asia/Tehran")
    export = orjson.loads((await memory.exporter.export(HERE)).content)
    tea = {"due": "2100-01-01T00:00:00+00:00", "cron": "0 9 * * *", "time_zone": "UTC"}
    assert export["reminders"] == [{"text": "Tea", **tea}]
    assert export["time_zone"] == "Asia/Tehran"


async def test_forgetting_a_person_takes_their_reminders_everywhere_and_their_zone(
    memory: Memory,
) -> None:
    await store(memory, reminder("private"))
    await store(memory, reminder("in the group"), conversation=GROUP, update_id=2)
    await store(memory, reminder("Bob's", person=BOB), conversation=GROUP, update_id=3)
    await memory.time_zones.store_zone(ANN, "Asia/Tehran")
    await memory.jobs.start_job(Job("before", "forget", ANN, 0, 999.0, b""))
    await memory.jobs.run_job("before")  # all of this was said after that confirmation
    assert len(await memory.reminders.list_open(HERE)) == 1
    assert len(await memory.reminders.list_open(GROUP)) == 2
    await memory.jobs.start_job(Job("job", "forget", ANN, 3, time.time(), b""))
    await memory.jobs.run_job("job")
    assert await memory.reminders.list_open(HERE) == []
    assert [each.text for each in await memory.reminders.list_open(GROUP)] == ["Bob's"]
    assert await memory.time_zones.read_zone(ANN) == ""
