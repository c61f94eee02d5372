"""Work items are stored with their turn, and one worker at a time gets each one that is due."""

import time
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime

import orjson
import pytest

from bot.telegram.updates import ButtonPress, Sender
from memory.erasure.jobs import Job
from memory.memory import Memory
from memory.queue.mailbox import Entry
from memory.queue.open_turn import Closing
from memory.scopes.changes import NotWritten, Receipt, Revision, Write
from memory.scopes.entries import Fact
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.sources import Source
from memory.store.errors import LeaseLost, StoreFull
from memory.store.keys import Scope
from memory.work.item import WorkChanges, WorkItem
from memory.work.items import TakenWork
from tests.bot.features.services import services_of
from tests.conftest import Documented
from tests.memory.clients import full_redis
from tests.memory.turns import (
    ANN,
    BOB,
    GROUP,
    HERE,
    begin,
    carry_out,
    clear,
    exchange_of,
    finish,
    put,
    take,
)

LEASE_S = 30.0
NEW_YEAR = 4_102_444_800.0
TEA = "tea"  # an item that follows from a fact, so no message asked for it


def reminder(text: str = "Call Ben", *, due: float = NEW_YEAR, person: int = ANN) -> WorkItem:
    asked = 0 if text == TEA else 11
    at, chat = "2100-01-01T00:00", 7
    return WorkItem(person, text, at=at, zone="UTC", due=due, chat_id=chat, message_id=asked)


async def store(
    memory: Memory, *reminders: WorkItem, conversation: Scope = HERE, update_id: int = 1
) -> WorkItem:
    """Close a turn whose tools set these reminders; return the first one."""
    turn = await begin(memory, update_id, conversation, sender=reminders[0].person)
    work = WorkChanges(list(reminders)).encode()
    await finish(memory, turn, exchange_of(turn), Closing(work=work))
    return reminders[0]


async def test_an_export_has_every_item_of_the_conversation(memory: Memory) -> None:
    """Also those of an operator's feature, even if it is off, and those that wait for a button."""
    await store(memory, replace(reminder("Cake"), kind="birthday"), reminder("not yet", due=0))
    work = orjson.loads((await memory.exporter.export(HERE)).content)["work"]
    found = [(each["kind"], each["text"], each["due"]) for each in work]
    assert found == [
        ("birthday", "Cake", "2100-01-01T00:00:00+00:00"),
        ("reminder", "not yet", None),
    ]


async def take_due(memory: Memory) -> TakenWork:
    [(where, id_)] = await memory.work.find_due(8)
    taken = await memory.work.take(where, id_, LEASE_S)
    assert taken
    return taken


async def let_the_lease_end(memory: Memory, id_: str) -> None:
    name = memory.keys.scope(HERE).work
    stored = (await memory.client.call("HGET", name, id_)).split(b"|", 6)
    stored[4] = b"0"
    await memory.client.call("HSET", name, id_, b"|".join(stored))
    await memory.client.call("ZADD", memory.keys.work, 0, f"{HERE.tag}|{id_}")


async def index(memory: Memory) -> dict[bytes, float]:
    return dict(await memory.client.call("ZRANGE", memory.keys.work, 0, -1, "WITHSCORES"))


@pytest.mark.parametrize("looks", [1, 2])
async def test_an_item_that_is_stored_while_a_worker_finds_it_gone_stays_in_the_index(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, looks: int
) -> None:
    """Also if the worker is dead by then: its last call finds another time in the index."""
    item, call = reminder(due=time.time() - 1), memory.client.call
    await call("ZADD", memory.keys.work, 0, f"{HERE.tag}|{item.id}")

    async def stored_meanwhile(*command: str | bytes | float) -> object:
        reply = await call(*command)
        if command[0] == "ZSCORE":
            await store(memory, item)
        return reply

    for look in range(1, looks + 1):
        if look == looks:
            monkeypatch.setattr(memory.client, "call", stored_meanwhile)
        assert await memory.work.take(HERE, item.id, LEASE_S) is None
    assert await memory.work.find_due(8) == [(HERE, item.id)]


async def test_a_turn_stores_what_its_tools_set_and_drops_what_they_cancel(memory: Memory) -> None:
    later, sooner = reminder(), replace(reminder('Tea\n{"|"}'), due=NEW_YEAR - 1.5)
    await store(memory, later, sooner)
    assert await memory.work.list_open(HERE, ANN) == [sooner, later]
    assert await memory.work.list_open(HERE, BOB) == []
    assert await memory.work.find_due(8) == []
    turn = await begin(memory, 2)
    work = WorkChanges(cancelled=[later]).encode()
    await finish(memory, turn, exchange_of(turn), Closing(work=work))
    assert await memory.work.list_open(HERE) == [sooner]
    assert memory.store.erased.is_set()
    [entry] = await memory.client.call("ZRANGE", memory.keys.erasures, 0, -1)
    assert entry.decode().endswith(later.id)


async def test_one_worker_gets_a_due_reminder_until_its_lease_ends(memory: Memory) -> None:
    due = await store(memory, reminder(due=time.time() - 1))
    first = await take_due(memory)
    assert first.item.text == due.text
    # The index now says when the lease ends.
    assert await memory.work.take(HERE, due.id, LEASE_S) is None
    assert await memory.work.find_due(8) == []
    await memory.work.hold(first, LEASE_S, 1)
    await let_the_lease_end(memory, due.id)
    second = await take_due(memory)
    assert second.item.sends == 1
    for step in (memory.work.hold(first, 1, 1), memory.work.close(first, 0)):
        with pytest.raises(LeaseLost):
            await step
    await memory.work.close(second, 0)
    await memory.work.close(second, 0)  # the answer of the first call was lost
    assert (await memory.work.list_open(HERE), await index(memory)) == ([], {})


async def test_what_repeats_waits_for_its_next_time_and_counts_sends_again(memory: Memory) -> None:
    await store(memory, replace(reminder(due=time.time() - 1), rule="0 9 * * *"))
    taken, key = await take_due(memory), memory.keys.scope(HERE).confirm
    await memory.work.hold(taken, LEASE_S, 1)
    await memory.client.call("HSET", key, *(f"{each}" for each in range(4_000)))
    async with full_redis(memory.client):
        with pytest.raises(StoreFull):  # only the index has no room: it is not sent again
            await memory.work.close(taken, NEW_YEAR)
    assert [each.due for each in await memory.work.list_open(HERE)] == [NEW_YEAR]
    await memory.work.close(taken, NEW_YEAR)
    assert await memory.client.call("HLEN", key) == 1  # hourly ones would fill it otherwise
    [waiting] = await memory.work.list_open(HERE)
    assert (waiting.due, waiting.sends, waiting.id) == (NEW_YEAR, 0, taken.item.id)
    assert (await memory.work.find_due(8), len(await index(memory))) == ([], 1)


async def test_a_full_redis_refuses_all_of_a_task_that_begins(memory: Memory) -> None:
    """Otherwise its entry would wait in the mailbox, and nobody would be woken up."""
    one = await store(memory, replace(reminder(due=time.time() - 1), is_task=True))
    taken = await take_due(memory)
    entry = Entry(one.turn_id, ANN, is_alone=True, body=b"{}")
    async with full_redis(memory.client):
        with pytest.raises(StoreFull):
            await memory.work.close(taken, 0, entry.to_member())
    assert await memory.client.call("EXISTS", memory.keys.scope(HERE).mailbox) == 0
    assert [each.is_open for each in await memory.work.list_open(HERE)] == [True]


async def test_a_postponed_reminder_keeps_its_due_time_and_its_count(memory: Memory) -> None:
    await store(memory, reminder(due=time.time() - 1))
    taken = await take_due(memory)
    await memory.work.hold(taken, LEASE_S, 1)
    await memory.work.postpone(taken, 60)
    [waiting] = await memory.work.list_open(HERE)
    assert (round(waiting.due), waiting.sends) == (round(taken.item.due), 0)
    assert 0 < await memory.work.due_in_s() < 61


async def test_the_field_decides_when_the_index_is_wrong(memory: Memory) -> None:
    await store(memory, reminder())
    [member] = await index(memory)
    await memory.client.call("ZADD", memory.keys.work, 0, member, 0, f"{HERE.tag}|0badcafe")
    for where, id_ in await memory.work.find_due(8) * 2:
        assert await memory.work.take(where, id_, LEASE_S) is None
    [(left, at)] = (await index(memory)).items()
    assert left == member
    assert at - time.time() * 1000 < 86_400_001  # looked at again in a day


async def test_a_reminder_without_a_yes_is_not_open_and_one_worker_ends_it(memory: Memory) -> None:
    asked, other = reminder(due=0), reminder(due=0)
    await store(memory, asked, other)
    assert (await memory.work.list_open(HERE), await memory.work.open_of(ANN)) == ([], [])
    agreed = asked.opened(NEW_YEAR)
    assert await memory.work.confirm(HERE, agreed)
    assert await memory.work.confirm(HERE, asked.opened(1))  # a repeat changes nothing
    assert await memory.work.list_open(HERE) == [agreed]
    taken = await memory.work.take(HERE, other.id, LEASE_S)
    assert taken is not None
    assert await memory.work.take(HERE, other.id, LEASE_S) is None
    await memory.work.close(taken, 0)
    assert not await memory.work.confirm(HERE, other.opened(NEW_YEAR))


async def test_whoever_agrees_while_the_end_is_said_keeps_the_reminder(memory: Memory) -> None:
    asked = await store(memory, reminder(due=0))
    taken = await memory.work.take(HERE, asked.id, LEASE_S)
    assert taken is not None
    assert await memory.work.confirm(HERE, asked.opened(NEW_YEAR))
    for end in (memory.work.hold(taken, LEASE_S, 1), memory.work.close(taken, 0)):
        with pytest.raises(LeaseLost):
            await end
    assert [each.id for each in await memory.work.list_open(HERE)] == [asked.id]


@pytest.mark.parametrize(("in_s", "wait_s"), [(60, 60), (9e6, 3_600)])
async def test_an_answer_is_awaited_for_an_hour_but_not_beyond_the_moment_itself(
    memory: Memory, in_s: float, wait_s: float
) -> None:
    began = time.time()
    at = datetime.fromtimestamp(began + in_s, UTC).replace(tzinfo=None)
    await store(memory, replace(reminder(due=0), at=at.isoformat()))
    [look_ms] = (await index(memory)).values()
    assert began - 1 <= look_ms / 1000 - wait_s <= time.time() + 1


async def test_reminders_are_counted_over_all_conversations_of_a_person(memory: Memory) -> None:
    await store(memory, reminder(), reminder())
    await store(memory, reminder(), reminder(person=BOB), conversation=GROUP, update_id=2)
    assert [len(await memory.work.open_of(person)) for person in (ANN, BOB)] == [3, 0]


async def test_reminders_go_with_the_message_in_which_they_were_asked_for(memory: Memory) -> None:
    await store(memory, reminder("first"))
    await store(memory, reminder("second"), update_id=2)
    await put(memory, 3)
    turn, third = await take(memory), reminder("third")
    one, answer = exchange_of(turn)
    await finish(memory, turn, [one, one, answer], Closing(work=WorkChanges([third]).encode()))
    for number, seqs in enumerate(([1, 2], [6])):  # the third one was asked for in two messages
        await memory.forgetting.erase_messages(HERE, seqs, f"receipt{number}")
    assert [each.text for each in await memory.work.list_open(HERE)] == ["second"]


async def test_a_reminder_that_was_set_while_memory_was_off_stays(memory: Memory) -> None:
    await memory.switch.turn_off(HERE)
    await store(memory, reminder())
    assert await memory.switch.turn_on(HERE) == 2
    assert len(await memory.work.list_open(HERE)) == 1


@pytest.mark.parametrize("then", ["it is looked at", "it is said and due again", "it waits"])
async def test_reminders_outlive_their_conversation_and_erasures_find_them(
    memory: Memory, then: str
) -> None:
    due = NEW_YEAR if then == "it is looked at" else time.time() - 1
    await store(memory, one := reminder(due=due), conversation=GROUP)
    keys = memory.keys.scope(GROUP)
    assert await memory.client.call("TTL", keys.work) == -1
    assert await memory.client.call("TTL", keys.log) > 0
    await memory.client.call("DEL", keys.meta)
    await memory.client.call("ZADD", memory.keys.index_of(GROUP), 1, GROUP.tag)
    taken = await memory.work.take(GROUP, one.id, LEASE_S)
    if taken and then == "it waits":
        await memory.work.postpone(taken, 3_600)
    elif taken:
        await memory.work.close(taken, time.time() + 3_600)
    await memory.sweep.prune()
    assert await memory.sweep.prune_people() == 0
    await carry_out(memory, Job("job", "forget", ANN, 9, time.time(), b""))
    assert await memory.work.list_open(GROUP) == []


async def test_forgetting_a_person_takes_their_reminders_everywhere(memory: Memory) -> None:
    await store(memory, reminder("private"))
    await store(memory, reminder("in the group"), conversation=GROUP, update_id=2)
    await store(memory, reminder("Bob's", person=BOB), conversation=GROUP, update_id=3)
    # All of this was said after this confirmation.
    await carry_out(memory, Job("before", "forget", ANN, 0, 999.0, b""))
    assert len(await memory.work.list_open(HERE)) == 1
    assert len(await memory.work.list_open(GROUP)) == 2
    await carry_out(memory, Job("job", "forget", ANN, 3, time.time(), b""))
    assert await memory.work.list_open(HERE) == []
    assert [each.text for each in await memory.work.list_open(GROUP)] == ["Bob's"]


async def test_an_item_is_added_outside_a_turn_once_and_goes_with_a_clear(memory: Memory) -> None:
    added = reminder(due=float(int(time.time()) - 1))
    for _ in range(2):
        await memory.work.add(await memory.scopes.read(HERE), added)
    assert await memory.work.list_open(HERE, ANN) == [added]
    taken = await take_due(memory)
    assert taken.item.text == added.text
    await clear(memory, 10, HERE)
    assert await memory.work.list_open(HERE) == []
    with pytest.raises(LeaseLost):
        await memory.work.close(taken, 0)


async def know(memory: Memory, conversation: Scope) -> tuple[ScopeMemory, ScopeMemory, Source]:
    """Learn a fact from the first message; return what `add` takes."""
    await store(memory, reminder("asked for"), conversation=conversation)
    here = await memory.scopes.read(conversation)
    source = Source(conversation.tag, 1, here.source_epoch, ANN)

    def decide(_: ScopeMemory) -> Write:
        return Write([Fact(0, "Their birthday is on 3 March.", (source,), time.time())])

    await memory.scopes.update(conversation.facts_scope, decide)
    here = await memory.scopes.read(conversation)
    return here, await memory.scopes.read(conversation.facts_scope), source


ERASURES = ["delete", "edit", "message", "edited message", "clear"]


async def erase(memory: Memory, conversation: Scope, how: str) -> None:
    facts = (await memory.scopes.read(conversation.facts_scope)).facts
    match how:
        case "delete":
            await memory.correcting.delete_fact(conversation, facts[0].id)
        case "edit":
            await memory.correcting.edit_fact(conversation, facts[0].id, "Has no birthday.", ANN)
        case "message":
            await memory.forgetting.erase_messages(conversation, [1, 2], "receipt")
        case "edited message":  # what is asked again has taken its place
            await memory.scopes.update(conversation, lambda _: Revision())
            await memory.forgetting.drop_facts(conversation, [1])
        case "clear":
            await clear(memory, 10, conversation)


async def texts(memory: Memory, conversation: Scope) -> list[str]:
    return sorted(each.text for each in await memory.work.list_open(conversation))


@pytest.mark.parametrize("how", ERASURES)
@pytest.mark.parametrize("conversation", [HERE, GROUP], ids=["private", "group"])
async def test_an_item_goes_with_the_fact_that_it_follows_from(
    memory: Memory, conversation: Scope, how: str
) -> None:
    """What the person asked for in the same message stays as long as the message."""
    here, facts, source = await know(memory, conversation)
    await memory.work.add(here, reminder(TEA), facts, source)
    assert await texts(memory, conversation) == ["asked for", TEA]
    await erase(memory, conversation, how)
    is_message_kept = how in ("delete", "edit", "edited message")
    assert await texts(memory, conversation) == ["asked for"] * is_message_kept


@pytest.mark.parametrize("how", ERASURES)
@pytest.mark.parametrize("late", ["all", "facts"])
@pytest.mark.parametrize("conversation", [HERE, GROUP], ids=["private", "group"])
async def test_an_item_is_not_added_after_an_erasure_of_what_it_follows_from(
    memory: Memory, conversation: Scope, late: str, how: str
) -> None:
    """Also if only the facts were read before it."""
    here, facts, source = await know(memory, conversation)
    await erase(memory, conversation, how)
    if late == "facts":
        here = await memory.scopes.read(conversation)
    with pytest.raises(NotWritten):
        await memory.work.add(here, reminder(TEA), facts, source)
    assert TEA not in await texts(memory, conversation)


async def test_an_item_is_added_neither_after_a_clear_nor_beside_its_fact(memory: Memory) -> None:
    """Also if the clear has not taken the fact yet."""
    here, facts, source = await know(memory, HERE)
    with pytest.raises(ValueError, match="conversation of the source"):
        await memory.work.add(here, reminder(TEA), facts, Source(GROUP.tag, 1))
    await clear(memory, 10, HERE)
    with pytest.raises(NotWritten):
        await memory.work.add(here, reminder(TEA))
    with pytest.raises(NotWritten):
        await memory.work.add(await memory.scopes.read(HERE), reminder(TEA), None, source)
    assert await texts(memory, HERE) == []


@pytest.mark.parametrize(
    ("how", "dies"),
    [("delete", True), ("edit", True), ("delete", False), ("edit", False), ("message", False)],
)
async def test_an_item_goes_if_its_process_dies_after_the_fact_or_if_it_is_added_right_before_that(
    memory: Memory, how: str, *, dies: bool
) -> None:
    """Right before the fact goes its version is still the one that was read."""
    _, facts, source = await know(memory, HERE)
    revise = memory.scopes.revise

    async def add() -> None:
        await memory.work.add(await memory.scopes.read(HERE), reminder(TEA), facts, source)

    async def revise_between(scope_memory: ScopeMemory, revision: Revision) -> Receipt:
        is_fact = scope_memory.scope == HERE.facts_scope
        if is_fact and not dies:
            await add()
        receipt = await revise(scope_memory, revision)
        if is_fact and dies:
            raise ConnectionError
        return receipt

    if dies:
        await add()
    memory.scopes.revise = revise_between  # type: ignore[method-assign]
    with pytest.raises(ConnectionError) if dies else nullcontext():
        await erase(memory, HERE, how)
    assert TEA not in await texts(memory, HERE)


async def test_the_examples_of_the_documentation_greet_and_add_an_item_that_goes_with_its_fact(
    memory: Memory, documented: Documented
) -> None:
    services = services_of(memory)
    greeting = documented("features.md", "class HelloCommand").feature(services)
    assert [command.name for command in greeting.commands] == ["hello"]
    assert greeting.sentences["en"].keys() == greeting.sentences["de"].keys()
    poems = documented("features.md", "class PoemCommand").feature(services)
    services.sentences.add(poems.sentences)
    press = poems.commands[0].buttons["poem"]
    pressed = ButtonPress(
        *(1, "p", HERE.chat_id, 0), is_group=False, message_id=9, sender=Sender(ANN, "Ann"),
        callback_data="poem:long",
    )  # fmt: skip
    [longer] = await press(pressed, HERE, "long")
    assert (longer.text[-6:], longer.buttons[0][0].callback_data) == ("night.", "poem:short")
    await know(memory, HERE)
    example = documented("features.md", "class Birthdays").Birthdays(services)
    for _ in range(2):
        assert await example.learned(HERE)
    [item] = await memory.work.of_kind("birthday").list_open(HERE, ANN)
    assert item.rule == "0 9 3 3 *"
    services.sentences.add({"en": {"birthdays.today": "🎂 {fact}"}})
    assert [part.text for part in (await example.message(item)).parts] == [f"🎂 {item.text}"]
    assert await example.message(replace(item, due=1)) is None
    assert await example.message(replace(item, sends=1)) is None
    await erase(memory, HERE, "delete")
    assert await memory.work.of_kind("birthday").list_open(HERE) == []
