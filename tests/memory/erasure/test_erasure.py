"""A clear wins over all that is in flight; forgetting a person leaves the rest of a group."""

import time
from dataclasses import replace
from functools import partial

import pytest

from memory.behaviors.context import AgentContext
from memory.erasure.jobs import Job, JobKind
from memory.erasure.questions import NotConfirmed
from memory.memory import Memory
from memory.queue.mailbox import Outcome
from memory.queue.open_turn import NoTurn
from memory.scopes.changes import Receipt
from memory.scopes.entries import Fact
from memory.scopes.fields import State
from memory.scopes.log import Cursor
from memory.store.errors import LeaseLost
from memory.store.keys import Scope
from tests.memory.clients import InterruptedClient
from tests.memory.conftest import memory_of
from tests.memory.erasure.test_forgetting import source, write
from tests.memory.turns import (
    ANN,
    BOB,
    GROUP,
    HERE,
    begin,
    carry_out,
    clear,
    close,
    exchange,
    exchange_of,
    put,
    take,
    texts,
)
from tests.memory.work.test_items import reminder, store


async def test_a_clear_erases_history_and_what_waits_and_keeps_later_ones(memory: Memory) -> None:
    await exchange(memory, 1)
    nonce = await memory.questions.ask(HERE, "clear", ANN)
    await put(memory, 2)
    await put(memory, 12)
    receipt = await memory.forgetting.clear(HERE, nonce, ANN, 10, as_admin=False)
    assert receipt == Receipt(messages=2, vectors=0, waiting=1, left=1)
    turn = await take(memory)
    assert [entry.update_id for entry in turn.entries] == [12]
    assert turn.loaded.messages is not None
    assert turn.loaded.messages.entries == []
    assert [await put(memory, 9), await put(memory, 11)] == [Outcome.DROPPED, Outcome.TAKEN]


async def test_a_turn_of_the_old_epoch_can_write_nothing(memory: Memory) -> None:
    old = await begin(memory, 1)
    await clear(memory, 10)
    with pytest.raises(LeaseLost):
        await memory.turns.write_outbox(old, b"late")
    with pytest.raises(LeaseLost):
        await memory.turns.commit(old, exchange_of(old), Cursor())
    assert await texts(memory) == []
    assert await memory.turns.acquire(HERE, Cursor()) == NoTurn("empty")


async def test_a_replayed_confirmation_only_returns_its_receipt(memory: Memory) -> None:
    await exchange(memory, 1)
    nonce = await memory.questions.ask(HERE, "clear", ANN)
    first = await memory.forgetting.clear(HERE, nonce, ANN, 10, as_admin=False)
    await exchange(memory, 11)
    assert await memory.forgetting.clear(HERE, nonce, ANN, 10, as_admin=False) == first
    assert await texts(memory) == ["text 11", "yes"]


async def test_only_the_asker_or_a_group_admin_can_confirm(memory: Memory) -> None:
    nonce = await memory.questions.ask(GROUP, "clear", ANN)
    with pytest.raises(NotConfirmed, match="not_yours"):
        await memory.forgetting.clear(GROUP, nonce, BOB, 10, as_admin=False)
    with pytest.raises(NotConfirmed, match="unknown"):
        await memory.forgetting.clear(GROUP, "made-up", ANN, 10, as_admin=False)
    await memory.forgetting.clear(GROUP, nonce, BOB, 10, as_admin=True)
    for presser in (ANN, None):  # a confirmed question still names its kind and its asker
        assert await memory.questions.check(GROUP, nonce, "clear", presser) == ""
    for kind, presser in (("clear", BOB), ("forget", ANN)):
        with pytest.raises(NotConfirmed, match="not_yours"):
            await memory.questions.check(GROUP, nonce, kind, presser)


async def test_a_cancelled_question_cannot_be_confirmed_nor_a_started_one_cancelled(
    memory: Memory,
) -> None:
    nonce = await memory.questions.ask(HERE, "clear", ANN)
    with pytest.raises(NotConfirmed, match="not_yours"):
        await memory.questions.withdraw(HERE, nonce, BOB)
    assert [await memory.questions.withdraw(HERE, nonce, ANN) for _ in range(2)] == [True, True]
    with pytest.raises(NotConfirmed, match="unknown"):
        await memory.forgetting.clear(HERE, nonce, ANN, 10, as_admin=False)
    nonce = await memory.questions.ask(GROUP, "forget", ANN)
    await memory.jobs.start_job(Job(nonce, "forget", ANN, 10, time.time(), b""))
    assert not await memory.questions.withdraw(GROUP, nonce, ANN)


async def test_a_question_that_is_confirmed_meanwhile_is_not_withdrawn(
    memory: Memory, interrupted: InterruptedClient
) -> None:
    """Any admin of a group may confirm, also while the one who was asked says no."""
    nonce = await memory.questions.ask(GROUP, "clear", ANN)
    confirm = partial(memory.forgetting.clear, GROUP, nonce, BOB, 10, as_admin=True)
    interrupted.behind["EXISTS"] = confirm
    questions = memory_of(interrupted).questions
    assert not await questions.withdraw(GROUP, nonce, ANN)
    assert await memory.questions.check(GROUP, nonce, "clear", None) == ""


async def test_forgetting_clears_the_private_chat_and_a_share_of_groups(memory: Memory) -> None:
    """A deleted entry of a stream would keep its bytes, also in a snapshot."""
    await memory.client.call("CONFIG SET", "rdbcompression", "no")
    await exchange(memory, 1)
    for update_id, sender in ((2, ANN), (3, BOB)):
        await exchange(memory, update_id, GROUP, sender=sender)
    await put(memory, 4, GROUP)
    topic = Scope.of_chat(HERE.chat_id, 5)
    await memory.client.call("SET", memory.keys.topic_name(topic), "telegram")
    await put(memory, 5, topic)
    for sender in (ANN, BOB):
        await memory.mailbox.note_album(GROUP, sender, "11")

    async def forget_elsewhere(_: Job) -> None:
        memory.store.erased.clear()  # the embedded server has rewritten its file

    memory.jobs.forgets.append(forget_elsewhere)
    finished = await carry_out(memory, Job("job", "forget", ANN, 10, time.time(), b""))
    assert (finished.conversations, finished.receipt) == (3, Receipt(4, 0, 2, 0))
    assert not await memory.client.call("EXISTS", memory.keys.topic_name(topic))
    has_album = [await memory.mailbox.has_album(GROUP, sender, "11") for sender in (ANN, BOB)]
    assert has_album == [False, True]
    assert await texts(memory) == []
    snapshot = await memory.client.call("DUMP", log := memory.keys.scope(GROUP).log)
    assert (b"text 2" in snapshot, b"text 3" in snapshot) == (False, True)
    assert await memory.client.call("TTL", log) > 0
    assert not await memory.client.call("EXISTS", memory.keys.person(ANN))
    assert memory.store.erased.is_set()


async def test_a_late_answer_is_erased_with_its_question(memory: Memory) -> None:
    await memory.client.call("CONFIG SET", "rdbcompression", "no")
    await exchange(memory, 1)  # said at 1000, answered at 1001
    context = await AgentContext.get_or_create({"chat_id": 7}, memory.histories, now=0)
    await context.chat_history.append_user_message("said since", 1002, sender_id=ANN)
    await context.chat_history.append_assistant_message("answered since", 1003)
    await carry_out(memory, Job("job", "forget", ANN, 10, 1000.5, b""))
    assert await texts(memory) == ["said since", "answered since"]
    snapshot = await memory.client.call("DUMP", memory.keys.scope(HERE).log)
    assert (b"text 1" in snapshot, b"said since" in snapshot) == (False, True)


async def test_forgetting_refuses_a_turn_in_flight_in_a_group(memory: Memory) -> None:
    bobs = await begin(memory, 1, GROUP, sender=BOB)
    await put(memory, 2, GROUP, sender=ANN)
    await carry_out(memory, Job("job", "forget", ANN, 10, time.time(), b""))
    with pytest.raises(LeaseLost):
        await memory.turns.write_outbox(bobs, b"quotes Ann")
    again = await take(memory, GROUP)
    assert [entry.update_id for entry in again.entries] == [1]


async def test_a_private_conversation_keeps_messages_after_the_confirmation(memory: Memory) -> None:
    await exchange(memory, 1)
    await memory.jobs.start_job(Job("job", "forget", ANN, 10, 2_000.0, b""))
    turn = await begin(memory, 11)
    later = [replace(message, sent_at=3_000.0) for message in exchange_of(turn)]
    await memory.turns.commit(turn, later, Cursor())
    finished = await memory.jobs.run_job("job")
    assert finished is not None
    assert finished.receipt.messages == 2
    assert await texts(memory) == ["text 11", "yes"]


async def test_an_older_job_does_not_lower_the_cut_of_a_newer_clear(memory: Memory) -> None:
    await put(memory, 1)
    await memory.jobs.start_job(Job("job", "forget", ANN, 10, time.time(), b""))
    await clear(memory, 20)
    await memory.jobs.run_job("job")
    assert await put(memory, 15) == Outcome.DROPPED


async def test_an_erasure_counts_although_one_from_long_ago_has_a_higher_id(memory: Memory) -> None:
    """After a week without updates, Telegram numbers on from a random id."""
    for conversation, cuts in ((HERE, ("cut_update", 99, "cut_at", 1)), (GROUP, ("cut:7", "99|1"))):
        await memory.client.call("HSET", memory.keys.scope(conversation).meta, *cuts)
        await put(memory, 9, conversation)
    await clear(memory, 10)
    await carry_out(memory, Job("job", "forget", ANN, 10, time.time(), b""))
    assert [await put(memory, 8, each) for each in (HERE, GROUP)] == [Outcome.DROPPED] * 2


async def test_only_late_messages_of_the_forgotten_are_dropped_in_a_group(memory: Memory) -> None:
    await put(memory, 1, GROUP)
    await carry_out(memory, Job("job", "forget", ANN, 10, time.time(), b""))
    sent = ((8, ANN), (9, BOB), (11, ANN))
    outcomes = [await put(memory, update_id, GROUP, sender=sender) for update_id, sender in sent]
    assert outcomes == [Outcome.DROPPED, Outcome.TAKEN, Outcome.TAKEN]


async def test_messages_that_a_forgetting_keeps_are_found_by_the_next_one(memory: Memory) -> None:
    """This holds even if an older update is delivered again in between."""
    await memory.jobs.start_job(Job("first", "forget", ANN, 10, 0.0, b""))
    for update_id in (9, 11, 9):
        await put(memory, update_id, GROUP)
    await memory.jobs.run_job("first")
    await close(memory, await take(memory, GROUP))
    assert await texts(memory, GROUP) == ["text 11", "yes"]
    await carry_out(memory, Job("second", "forget", ANN, 12, time.time(), b""))
    assert await texts(memory, GROUP) == []


async def test_the_next_forgetting_finds_what_was_written_while_one_began(memory: Memory) -> None:
    """The process has written the person's index before, and does not write it again."""
    await exchange(memory, 9)
    await memory.jobs.start_job(Job("first", "forget", ANN, 10, 0.0, b""))
    heard: list[list[str]] = []

    async def deleting(conversation: Scope) -> None:
        heard.append(await texts(memory, conversation))
        await put(memory, 11, conversation)

    await memory.jobs.run_job("first", deleting)
    assert heard == [["text 9", "yes"]]  # behaviors are called before anything is erased
    indexed = await memory.client.call("HGETALL", memory.keys.person(ANN))
    assert {tag: stamp.partition(b"|")[0] for tag, stamp in indexed.items()} == {b"c:7:0": b"9"}
    await carry_out(memory, Job("second", "forget", ANN, 12, time.time(), b""))
    assert not await memory.client.call("EXISTS", memory.keys.scope(HERE).mailbox)
    assert not await memory.client.call("EXISTS", memory.keys.person(ANN))


async def test_an_older_forgetting_that_resumes_does_not_undo_a_newer_one(memory: Memory) -> None:
    elsewhere = Scope.of_chat(-8)
    await put(memory, 1, GROUP)
    await memory.jobs.start_job(Job("older", "forget", ANN, 10, time.time(), b""))
    await carry_out(memory, Job("newer", "forget", ANN, 20, time.time(), b""))
    await put(memory, 21, GROUP)
    await memory.jobs.run_job("older")
    outcomes = [await put(memory, 15, where) for where in (GROUP, elsewhere)]
    assert outcomes == [Outcome.DROPPED, Outcome.DROPPED]
    assert await put(memory, 21, elsewhere) == Outcome.TAKEN


async def test_a_job_that_resumes_counts_the_same_and_reports_once(memory: Memory) -> None:
    await exchange(memory, 1)
    first = await carry_out(memory, Job("job", "forget", ANN, 10, time.time(), b""))
    assert await memory.jobs.run_job("job") == first
    await memory.jobs.mark_reported("job")
    assert await memory.jobs.run_job("job") is None
    again = Job("job", "forget", ANN, 20, time.time(), b"")
    assert not await memory.jobs.start_job(again)
    assert await memory.jobs.run_job("job") == first  # confirmed again, it reports again
    record = memory.keys.job("job")
    await memory.client.call("DEL", record)  # it has expired
    await memory.jobs.mark_reported("job")
    assert await memory.client.call("TTL", record) > 0


async def test_a_finished_job_that_was_not_reported_erases_nothing_again(memory: Memory) -> None:
    erased: list[Scope] = []

    async def deleting(conversation: Scope) -> None:
        erased.append(conversation)
        with pytest.raises(LeaseLost):  # another worker that is woken for it meanwhile
            await memory.jobs.run_job("job", deleting)

    await exchange(memory, 1)
    await memory.jobs.start_job(Job("job", "all", 0, 10, time.time(), b""))
    first = await memory.jobs.run_job("job", deleting)
    await memory.client.call("DEL", memory.keys.scope(HERE).confirm)  # an hour passes
    assert await memory.jobs.run_job("job", deleting) == first
    assert erased == [HERE]


async def test_clearing_all_erases_every_conversation(memory: Memory) -> None:
    album = (Scope.of_chat(1), BOB, "11")
    await memory.mailbox.note_album(*album)
    for chat_id in range(1, 40):
        await exchange(memory, chat_id, Scope.of_chat(chat_id))
    finished = await carry_out(memory, Job("job", "all", 0, 100, time.time(), b""))
    assert (finished.conversations, finished.receipt.messages) == (39, 78)
    assert not await memory.mailbox.has_album(*album)


async def test_a_moved_group_is_cleared_by_either_chat_id(memory: Memory) -> None:
    new = Scope.of_chat(-100)
    await store(memory, reminder(), conversation=new, update_id=7)  # before it heard of the move
    await memory.questions.ask(new, "tool", ANN, "about")
    await write(memory, new, State("{}"), Fact(0, "sails", (source(1, new),), 1))
    await put(memory, 1, new)
    await memory.mailbox.move(GROUP, new)
    await memory.scopes.drop_erased()
    assert new not in memory.scopes.held
    await close(memory, await take(memory, GROUP))
    targets: list[tuple[JobKind, int]] = [("chat", -100), ("chat", -7), ("all", 0)]
    for number, (kind, target) in enumerate(targets):
        job = Job(f"job {number}", kind, target, 10, time.time(), b"")
        finished = await carry_out(memory, job)
        assert (finished.conversations, finished.receipt.messages) == (1, 0 if number else 2)
    keys = memory.keys.scope(new)
    left = [key for key in keys if await memory.client.call("EXISTS", key)]
    assert left == [keys.meta, keys.seen]
    await memory.forgetting.erase_share(new, ANN, 0, "of a sender in the new one")
    assert await memory.client.call("TTL", keys.meta) == -1


async def test_a_moved_group_keeps_its_memory_and_its_waiting_messages(memory: Memory) -> None:
    new = Scope.of_chat(-100)
    await exchange(memory, 1, GROUP)
    await put(memory, 2, new)
    await memory.mailbox.move(GROUP, new)
    await memory.mailbox.move(GROUP, new)
    await put(memory, 3, new)
    turn = await take(memory, GROUP)
    assert [entry.update_id for entry in turn.entries] == [2, 3]
    assert await memory.mailbox.resolve(new) == GROUP
    context = await AgentContext.get_or_create({"chat_id": -7}, memory.histories, now=0)
    assert [message.text for message in context.chat_history.messages] == ["text 1", "yes"]
    assert await memory.turns.acquire(new, Cursor()) == NoTurn("moved")
    stays = await memory.client.call("HKEYS", memory.keys.scope(new).meta)  # for ever
    assert not [name for name in stays if name.endswith(b":%d" % ANN)]
