"""An erasure also takes what rests on the erased text, even if it is being learned from."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC
from functools import partial
from typing import Any, Literal

import pytest

from memory.documents import Chunk, Library, Origin, Section
from memory.erasure.jobs import Job, JobKind
from memory.learning.vectors import VectorLearner
from memory.memory import Memory
from memory.message import Message
from memory.queue.mailbox import Entry
from memory.queue.open_turn import Closing
from memory.scopes.changes import Receipt, Write
from memory.scopes.entries import THE_ONE_BEFORE, Again, Ended, Fact, ScopeEntry, Synopsis
from memory.scopes.fact_lists import listed
from memory.scopes.fields import STATE_LEARNER, Digest, Field, State, WaitingWrite, Watermark
from memory.scopes.history import ChatHistory
from memory.scopes.log import Cursor
from memory.scopes.sources import Source, Wording
from memory.scopes.writes import ForgetRecord, Remember, to_json
from memory.store.client import RedisClient
from memory.store.errors import StoreError
from memory.store.keys import KEY_SUFFIXES, Scope
from memory.work.item import WorkChanges, WorkItem
from tests.memory.clients import InterruptedClient
from tests.memory.conftest import memory_of
from tests.memory.learning.scripted import Notes, ScriptedModel, talk, talk_and_learn
from tests.memory.turns import (
    ANN,
    ANNS,
    BOB,
    GROUP,
    HERE,
    begin,
    carry_out,
    clear,
    erase_all,
    exchange,
    exchange_of,
    finish,
    store,
    take,
    texts,
)
from tests.memory.words_embedder import WordsEmbedder
from tests.stored import everything_stored

CANARY = "quokka"


def source(seq: int, where: Scope = HERE, sender: int = ANN, epoch: int = 0) -> Source:
    return Source(where.tag, seq, epoch, sender)


def synopsis(first: int, last: int, where: Scope = HERE) -> Synopsis:
    about = f"about a {CANARY}"
    return Synopsis(0, about, "", "", "", "", "", "", 1, 2, first, last, where.tag)


async def write(memory: Memory, scope: Scope, *parts: ScopeEntry | Field) -> None:
    entries = [part for part in parts if isinstance(part, ScopeEntry)]
    fields = [part for part in parts if isinstance(part, Field)]
    await memory.scopes.write(await memory.scopes.read(scope), Write(entries, fields))


async def facts_of(memory: Memory, scope: Scope) -> list[tuple[str, bool, list[int]]]:
    facts = (await memory.scopes.read(scope)).facts
    return [(f.text, f.is_current, [s.seq for s in f.sources]) for f in facts]


async def forget(memory: Memory, *seqs: int) -> Receipt:
    return await memory.forgetting.erase_messages(HERE, seqs, "nonce")


async def press(memory: Memory, nonce: str) -> Receipt:
    """Confirm the erasure of messages, as the button does."""
    about = await memory.questions.check(HERE, nonce, "messages", ANN)
    seqs = [int(seq) for seq in about.split(",") if seq]
    return await memory.forgetting.erase_messages(HERE, seqs, nonce)


async def test_later_answers_that_repeat_a_message_are_found_by_its_rare_words(
    memory: Memory,
) -> None:
    said = [
        ("Which boats are good?", "Gulls and Larks."),
        ("My 3 boats in Oulu are called Quokka and Lark", "Fine."),
        ("What is my boat called?", "Quokka!"),
        ("Which others are there?", "Larks, as I said."),
        ("Is Oulu nice?", "Oulu is nice."),
        ("What else?", "3 is a prime, 1729 is none."),
        ("我的猫叫海鸥", "好"),
        ("And my cat?", "海鸥"),
        ("Is it sunny?", "我不知道。"),
        ("And Bob's?", "Quokka, too."),
    ]
    for number, (question, answer) in enumerate(said, 1):
        await say(memory, number, question, answer, BOB if question == "And Bob's?" else ANN)

    async def repeats(message_id: int) -> set[int]:
        found = await memory.forgetting.find_exchange(HERE, message_id)
        return await memory.forgetting.find_repeats(HERE, found)

    assert await repeats(2) == {6}
    assert await repeats(7) == {16}


async def say(
    memory: Memory,
    number: int,
    question: str,
    answer: str,
    asker: int = ANN,
    *,
    here: Scope = HERE,
    used: str = "",
) -> None:
    asked = Message(0, 0, "user", question, number, asker, message_ids=(number,))
    answered = Message(0, 0, "assistant", answer, number, used=used)
    await finish(memory, await begin(memory, number, here), [asked, answered])


async def test_an_answer_that_is_committed_while_its_message_is_forgotten_goes_with_it(
    memory: Memory, interrupted: InterruptedClient, valkey: str
) -> None:
    beside = memory_of(interrupted)
    await say(memory, 1, f"I have a {CANARY}", "Nice.")
    question = await memory.forgetting.find_exchange(HERE, 1)
    interrupted.behind["XREVRANGE"] = partial(say, memory, 2, "What do I have?", f"A {CANARY}.")
    repeats = partial(beside.forgetting.find_repeats, HERE, question)
    await beside.forgetting.erase_messages(HERE, [1, 2], "nonce", repeats)
    assert interrupted.behind == {}
    assert CANARY.encode() not in await everything_stored(valkey)
    assert await texts(memory) == ["What do I have?"]


async def test_an_id_that_a_moved_group_gave_twice_means_the_message_of_that_time(
    memory: Memory,
) -> None:
    day, said = 86_400, partial(Message, 0, 0, "user", sender_id=ANN, message_ids=(3,))
    both = [said(text="before", sent_at=day), said(text="after", sent_at=9 * day)]
    await store(memory, both, GROUP)
    forgetting, found = memory.forgetting, list[list[str]]()
    for at in (day + 5, 5 * day, 9 * day):
        found.append([each.text for each in await forgetting.find_exchange(GROUP, 3, at)])
    assert found == [["before"], [], ["after"]]


async def test_a_fact_is_erased_with_its_last_source(memory: Memory) -> None:
    await talk(memory, "one", "two")
    facts = [Fact(0, f"rests on {number}", (source(1),), 1) for number in ("one", "both")]
    await write(memory, ANNS, *facts, Again(2, source(3)))
    assert await forget(memory, 1, 2) == Receipt(2, 0, 0, 0, 2)
    assert await facts_of(memory, ANNS) == [("rests on both", True, [3])]
    assert await texts(memory) == ["two", "yes"]


async def test_a_fact_becomes_current_again_if_its_replacement_is_forgotten(memory: Memory) -> None:
    await talk(memory, "one", "two")
    await write(memory, ANNS, Fact(0, "lives in Bonn", (source(1),), 1))
    await write(memory, ANNS, Fact(0, "lives in Ulm", (source(3),), 1), Ended(1, 2, THE_ONE_BEFORE))
    await forget(memory, 3, 4)
    assert await facts_of(memory, ANNS) == [("lives in Bonn", True, [1])]


async def test_synopses_state_digests_and_tool_writes_go_with_the_message(memory: Memory) -> None:
    await talk(memory, "one", "two", closing=Closing(digest="looked it up"))
    await write(memory, HERE, synopsis(1, 2), synopsis(3, 4))
    first, second = (WaitingWrite(str(seq), seq, 0, "", ForgetRecord(9)) for seq in (1, 3))
    await write(memory, HERE, State("{}"), Watermark(STATE_LEARNER, 4), first, second)
    assert await forget(memory, 1, 2) == Receipt(2, 0, 0, 0, 1)
    here = await memory.scopes.read(HERE)
    assert [each.first_seq for each in here.synopses] == [3]
    left = [Digest(4, "looked it up"), Watermark(STATE_LEARNER, 0), second]
    assert dict(here.fields) == {field.name: field.stored for field in left}


async def test_a_reset_state_is_learned_again_from_the_newest_messages(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    await talk(memory, *map(str, range(40)))
    await write(memory, HERE, State("{}"), Watermark(STATE_LEARNER, 80))
    revise = memory.scopes.revise

    async def learned_before(*asked: Any) -> Receipt:
        monkeypatch.undo()
        await memory.learn(HERE)  # a process sees the note, and there is nothing to learn yet
        return await revise(*asked)

    monkeypatch.setattr(memory.scopes, "revise", learned_before)
    await forget(memory, 1, 2)
    here = await memory.scopes.read(HERE)
    assert here.watermark(STATE_LEARNER) == 30  # the tail is fifty messages
    assert await memory.client.call("ZSCORE", memory.keys.learning, HERE.tag) <= time.time()


async def test_an_interrupted_forgetting_is_finished_and_not_cancelled(memory: Memory) -> None:
    await talk(memory, "one", "two")
    await write(memory, ANNS, Fact(0, CANARY, (source(1),), 1))
    nonce = await memory.questions.ask(HERE, "messages", ANN, "1,2")
    receipts = memory.keys.scope(ANNS).confirm
    await memory.client.call("SET", receipts, "no hash, so that writing one here fails")
    with pytest.raises(StoreError):
        await press(memory, nonce)
    assert await texts(memory) == ["two", "yes"]
    await memory.client.call("DEL", receipts)
    assert not await memory.questions.withdraw(HERE, nonce, ANN)
    assert await press(memory, nonce) == await press(memory, nonce) == Receipt(2, 0, 0, 0, 1)
    assert not await memory.questions.withdraw(HERE, nonce, ANN)
    assert await facts_of(memory, ANNS) == []


async def expire(memory: Memory) -> None:
    """Let a conversation expire, but not its person's scope. Work items do not expire."""
    names = memory.keys.scope(HERE)
    await memory.client.call("DEL", *{*names} - {names.work})


async def begin_anew_and_clear(memory: Memory) -> None:
    await expire(memory)
    await talk(memory, "two")
    await (await ChatHistory.read(memory.histories, HERE)).clear()
    await memory.scopes.cut(ANNS, HERE)


@pytest.mark.parametrize("is_personal", [True, False])
@pytest.mark.parametrize(
    "meanwhile",
    [lambda memory: forget(memory, 1, 2), clear, begin_anew_and_clear, erase_all],
    ids=["forgotten", "it is cleared", "it expires, and is cleared again", "all is erased"],
)
async def test_nothing_is_learned_from_what_was_erased_during_the_call(
    memory: Memory,
    model: ScriptedModel,
    meanwhile: Callable[[Memory], Awaitable[object]],
    *,
    is_personal: bool,
) -> None:
    memory.enable_learning([Notes(every=1, is_personal=is_personal)], model)
    model.parts = {"notes": {"text": CANARY}}
    await talk(memory, "one", "two")
    model.meanwhile = partial(meanwhile, memory)
    await memory.learn(HERE)
    assert [await facts_of(memory, scope) for scope in (HERE, ANNS)] == [[], []]


async def test_a_clear_erases_facts_that_rest_on_this_conversation_alone(memory: Memory) -> None:
    await talk(memory, "one")
    other = Scope.of_chat(ANN, 5)
    elsewhere = Fact(0, "said in another topic, too", (source(1), source(1, other)), 1)
    await write(memory, ANNS, Fact(0, CANARY, (source(1),), 1), elsewhere)
    nonce = await memory.questions.ask(HERE, "clear", ANN)
    receipt = await memory.forgetting.clear(HERE, nonce, ANN, 1, as_admin=False)
    assert receipt == Receipt(messages=2, records=1)
    assert [fact[0] for fact in await facts_of(memory, ANNS)] == ["said in another topic, too"]
    await talk(memory, "again")
    await write(memory, ANNS, Fact(0, "learned since", (source(3, epoch=1),), 1))
    assert await memory.forgetting.clear(HERE, nonce, ANN, 1, as_admin=False) == receipt
    assert [fact[0] for fact in await facts_of(memory, ANNS)][1:] == ["learned since"]


async def test_an_expired_conversation_that_begins_again_is_learned_from_its_first_message(
    memory: Memory, model: ScriptedModel
) -> None:
    memory.enable_learning([notes := Notes(every=1, is_personal=True)], model)
    model.parts = {"notes": {"text": "a note"}}
    await talk_and_learn(memory, "one", "two")
    for _ in range(2):
        await expire(memory)
        await talk_and_learn(memory, "three", "four")
    assert notes.batches == [[1, 2, 3, 4]] * 3


async def test_a_clear_before_a_conversation_expired_does_not_block_learning_afterwards(
    memory: Memory, model: ScriptedModel
) -> None:
    memory.enable_learning([Notes(every=1, is_personal=True)], model)
    model.parts = {"notes": {"text": "a note"}}
    await talk(memory, "one")
    await clear(memory)
    await expire(memory)
    kept = to_json([Remember("a tool's", sender_id=ANN)])
    await talk_and_learn(memory, "two", closing=Closing(writes=kept))
    assert [fact[0] for fact in await facts_of(memory, ANNS)] == ["a tool's", "a note"]


async def test_a_clear_also_erases_what_was_learned_before_an_expiry(memory: Memory) -> None:
    await talk(memory, "one")
    await clear(memory, update_id=1)
    for text in ("before", "since"):
        kept = to_json([Remember(text, sender_id=ANN)])
        await talk_and_learn(memory, text, closing=Closing(writes=kept))
        if text == "before":
            await expire(memory)
    assert [fact[0] for fact in await facts_of(memory, ANNS)] == ["before", "since"]
    assert (await clear(memory, update_id=20)).records == 2
    assert await facts_of(memory, ANNS) == []


async def test_forgetting_a_person_erases_nothing_of_others(memory: Memory, valkey: str) -> None:
    await talk(memory, CANARY)
    await talk(memory, f"Ann's {CANARY}", conversation=GROUP)
    history = await ChatHistory.read(memory.histories, GROUP)
    await history.append_user_message("Ben's own words", 2_000, sender_id=BOB, sender_name="Ben")
    await write(memory, ANNS, Fact(0, f"has a {CANARY}", (source(1),), 1), State(CANARY))
    await write(memory, HERE, synopsis(1, 2))
    await write(
        memory,
        GROUP,
        Fact(0, f"Ann has a {CANARY}", (source(1, GROUP),), 1),
        Fact(0, "Ben sails", (source(3, GROUP, BOB),), 1),
        Fact(0, "It is Monday", (source(1, GROUP), source(3, GROUP, BOB)), 1),
        synopsis(1, 2, GROUP),
        State(f"mentions a {CANARY}"),
    )
    await memory.learn(GROUP)
    finished = await carry_out(memory, Job("job", "forget", ANN, 10, time.time(), b""))
    assert finished.conversations == 2
    assert (finished.receipt.messages, finished.receipt.records) == (4, 4)
    assert await facts_of(memory, GROUP) == [("Ben sails", True, [3]), ("It is Monday", True, [3])]
    assert CANARY.encode() not in await everything_stored(valkey)
    assert await texts(memory, GROUP) == ["Ben's own words"]


async def test_a_job_that_is_started_again_keeps_its_cutoff(memory: Memory) -> None:
    """A repeated call may come late, when the job is finished."""
    await carry_out(memory, Job("job", "forget", ANN, 10, 1_000.0, b"first"))
    assert not await memory.jobs.start_job(Job("job", "forget", ANN, 20, 2_000.0, b"second"))
    finished = await memory.jobs.run_job("job")
    assert finished is not None
    assert (finished.job.cut_update, finished.job.cut_at) == (10, 1_000.0)
    assert finished.job.report == b"first"


@pytest.mark.parametrize("name", KEY_SUFFIXES._fields)
async def test_a_damaged_key_of_one_chat_ends_no_erasure(memory: Memory, name: str) -> None:
    """Those of the chats behind it would never be erased, and nobody would get a receipt."""
    await talk(memory, CANARY)
    await memory.client.call("SET", getattr(memory.keys.scope(HERE), name), CANARY)
    for kind in ("forget", "all"):
        await carry_out(memory, Job(kind, kind, ANN, 10, time.time(), b""))


@pytest.mark.parametrize("kind", ["forget", "all"])
@pytest.mark.parametrize("scope", [HERE, GROUP])
async def test_a_damaged_item_of_one_chat_ends_no_erasure(
    memory: Memory, scope: Scope, kind: Literal["forget", "all"]
) -> None:
    """What was said after the confirmation stays, so the items are looked at one by one."""
    await exchange(memory, 1, scope)
    work = memory.keys.scope(scope).work
    await memory.client.call("HSET", work, "deadbeef", "damaged")
    await carry_out(memory, Job("job", kind, ANN, 10, 5.0, b""))
    assert await memory.client.call("EXISTS", work) == 0


async def test_a_job_takes_a_tasks_turn_that_began_before_it_and_what_it_set(
    memory: Memory,
) -> None:
    """What was said after the confirmation stays, before and behind that turn."""
    await memory.jobs.start_job(Job("job", "forget", ANN, 10, 2_000.0, b""))
    reminder = WorkItem(ANN, CANARY, at="2031-05-24T09:00+00:00", due=1_937_379_600.0)
    for number, task in ((11, 0), (77, -77), (12, 0)):
        await memory.mailbox.put(HERE, Entry(task or number, ANN, is_alone=True, body=b"x"))
        turn = await take(memory)
        said = [replace(each, sent_at=3_000.0) for each in exchange_of(turn)]
        said[0] = replace(said[0], message_ids=(task,)) if task else said[0]
        work = WorkChanges([reminder]).encode() if task else ""
        await memory.turns.commit(turn, said, Cursor(), closing=Closing(work=work))
    done = await memory.jobs.run_job("job")
    assert done is not None
    assert done.receipt.messages == 2
    assert len(await texts(memory)) == 4
    assert await memory.work.list_open(HERE) == []


@pytest.mark.parametrize(("kind", "target"), [("all", 0), ("chat", ANN)])
async def test_a_job_of_an_operator_erases_facts_and_keeps_the_operators_documents(
    memory: Memory, kind: JobKind, target: int
) -> None:
    manual = Scope.of_namespace("manual")
    await talk(memory, "one")
    await write(memory, ANNS, Fact(0, "a fact", (source(1),), 1))
    await write(memory, manual, Chunk(0, "doc", 0, "how to", "Manual"))
    finished = await carry_out(memory, Job("job", kind, target, 10, time.time(), b""))
    assert (finished.conversations, finished.receipt.records) == (1, 1)
    assert await facts_of(memory, ANNS) == []
    assert [chunk.text for chunk in (await memory.scopes.read(manual)).of_kind(Chunk)] == ["how to"]


async def test_facts_of_a_person_do_not_expire_while_the_person_writes(
    memory: Memory, store: RedisClient
) -> None:
    await talk(memory, "one")
    await write(memory, ANNS, Fact(0, "a fact", (source(1),), 1))
    keys = memory.keys.scope(ANNS)
    await store.call("EXPIRE", keys.records, 5)
    await store.call("HDEL", keys.meta, "expiring")  # as if more than an hour had passed
    memory.scopes.drop(ANNS)
    await talk_and_learn(memory, "two")
    assert await store.call("TTL", keys.records) > 5


async def test_a_merged_fact_loses_only_the_erased_source(memory: Memory, valkey: str) -> None:
    """The first source said the kind and the days. Without it nothing of them is left."""
    first = Fact(
        0, "Ann has been away", (source(1),), 1.0, kind=CANARY, from_day="1987-06", to_day="1987-07"
    )
    await talk(memory, "one", "two", "three")
    await write(memory, ANNS, first, Again(1, source(3), 86_400.0), Again(1, source(5), 172_800.0))
    await forget(memory, 3)
    [left] = (await memory.scopes.read(ANNS)).facts
    assert [(each.seq, each.at) for each in left.sources] == [(1, 0), (5, 172_800.0)]
    assert (left.kind, left.from_day, left.to_day) == (CANARY, "1987-06", "1987-07")
    undated = replace(left, from_day="", to_day="")
    said = "1 January 1970, 3 January 1970"
    assert listed(undated, UTC) == f"#{left.id} [{said}] Ann has been away"
    await memory.forgetting.erase_messages(HERE, [1], "another")
    [left] = (await memory.scopes.read(ANNS)).facts
    assert [each.seq for each in left.sources] == [5]
    assert (left.kind, left.from_day, left.to_day) == ("", "", "")
    stored = await everything_stored(valkey)
    assert CANARY.encode() not in stored
    assert b"1987-0" not in stored
    assert await facts_of(memory, ANNS) == [("Ann has been away", True, [5])]


async def test_a_merged_fact_without_its_first_source_has_the_words_of_the_next_one(
    memory: Memory, valkey: str, store: RedisClient
) -> None:
    await talk(memory, "one", "two")
    again = Again(1, replace(source(3), said="Has a friend"), 86_400.0)
    fact = Fact(0, f"Has a friend, {CANARY}", (source(1),), 1.0)
    await write(memory, ANNS, fact, again, Fact(0, "Has a cat", (source(3),), 3.0))
    vectors = memory.keys.scope(ANNS).record_vectors
    learner = VectorLearner(memory.scopes, WordsEmbedder())
    await learner.learn_records(await memory.scopes.read(ANNS))
    before = await store.call("XRANGE", vectors, "-", "+")
    await forget(memory, 1)
    left, _ = (await memory.scopes.read(ANNS)).facts
    assert (left.id, left.text, left.said_at) == (1, "Has a friend", 86_400.0)
    assert await store.call("XLEN", vectors) == 0
    assert CANARY.encode() not in await everything_stored(valkey)
    assert await learner.learn_records(await memory.scopes.read(ANNS)) == 2
    after = await store.call("XRANGE", vectors, "-", "+")
    assert [one == other for one, other in zip(before, after, strict=True)] == [False, True]


async def test_words_that_a_merged_fact_has_from_its_next_source_go_with_that_source(
    memory: Memory, valkey: str
) -> None:
    await talk(memory, "one", "two", "three")
    other = Again(1, replace(source(3), said=f"Has a pal, {CANARY}"), 86_400.0)
    same = Again(1, source(5), 172_800.0)
    await write(memory, ANNS, Fact(0, "Has a friend", (source(1),), 1.0), other, same)
    await memory.forgetting.erase_messages(HERE, [1], "first")
    await memory.forgetting.erase_messages(HERE, [3], "second")
    [left] = (await memory.scopes.read(ANNS)).facts
    assert (left.text, left.said_at) == ("Has a friend", 172_800.0)
    assert CANARY.encode() not in await everything_stored(valkey)


async def test_a_former_wording_goes_with_its_message(memory: Memory, valkey: str) -> None:
    await talk(memory, "one", "two", "three")
    wording = Wording(9, CANARY, (source(1), source(3)), 1.0, 2.0)
    await write(memory, ANNS, Fact(0, "Edited", (source(5),), 3.0, replaced=(wording,)))
    await forget(memory, 1)
    [left] = (await memory.scopes.read(ANNS)).facts
    assert (left.text, left.replaced) == ("Edited", ())
    assert CANARY.encode() not in await everything_stored(valkey)


async def test_files_sent_to_a_group_go_with_their_sender(memory: Memory, valkey: str) -> None:
    """Also one that was still being read when the person confirmed."""
    library = Library(memory.scopes)
    for name, sender in (("anns.txt", ANN), ("bobs.txt", BOB)):
        scope_memory = await memory.scopes.read(GROUP)
        passages = [Section(f"{CANARY if sender == ANN else 'boat'} says {name}")]
        await library.put(scope_memory, Origin(name, sender_id=sender, sent_at=9), passages)
    await memory.forgetting.erase_share(GROUP, ANN, 10, "nonce")
    left = await library.listed(GROUP)
    assert [document.title for document in left] == ["bobs.txt"]
    assert CANARY.encode() not in await everything_stored(valkey)


@pytest.mark.parametrize(
    ("dropped", "left"), [(0, [1, 3, 5]), (1, [3, 5]), (4, [5]), (6, [])], ids=str
)
async def test_forgetting_a_person_erases_what_rests_on_messages_dropped_for_lack_of_space(
    memory: Memory, dropped: int, left: list[int]
) -> None:
    history = await ChatHistory.read(memory.histories, GROUP)
    for number in range(6):
        await history.append_user_message(str(number), 1_000, sender_id=BOB, sender_name="Ben")
    await write(memory, GROUP, *(synopsis(first, first + 1, GROUP) for first in (1, 3, 5)))
    await write(memory, GROUP, *(Digest(seq, "looked it up") for seq in (1, 3, 5)))
    log = memory.keys.scope(GROUP).log
    await memory.client.call("XTRIM", log, "MINID", dropped + 1)
    await memory.forgetting.erase_share(GROUP, ANN, time.time(), "nonce")
    here = await memory.scopes.read(GROUP)
    assert [each.first_seq for each in here.synopses] == left
    assert sorted(digest.seq for digest in here.all(Digest)) == left
    assert await texts(memory, GROUP) == [str(number) for number in range(dropped, 6)]
