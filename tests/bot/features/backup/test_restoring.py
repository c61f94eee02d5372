"""A restored store is as it was, without what was erased since."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import orjson
import pytest

from bot.features.backup.backup_file import BackupRefused
from bot.features.backup.erasures import read_journal
from bot.telegram.admission import Members
from memory.documents import Library, Origin, Section
from memory.memory import Memory
from memory.message import Message
from memory.queue.mailbox import Entry
from memory.scopes.entries import Fact, Synopsis
from memory.scopes.fields import Digest, State
from memory.scopes.history import ChatHistory
from memory.scopes.sources import Source
from memory.store.commands import Command
from memory.store.keys import Scope
from memory.work.item import WorkItem
from tests.bot.features.backup.conftest import PASSPHRASES, later_journal, restore, save
from tests.memory.clients import DyingClient
from tests.memory.conftest import OPTIONS, memory_of
from tests.memory.erasure.test_forgetting import write
from tests.memory.turns import (
    ANN,
    ANNS,
    BOB,
    GROUP,
    HERE,
    clear,
    erase_all,
    finish,
    forget_ann,
    take,
    texts,
)

CANARY = "quokka"
NEXT_YEAR = time.time() + 365 * 86_400


async def say(memory: Memory, text: str, where: Scope = HERE, sender: int = ANN) -> None:
    """Let a person say something and have it answered and learned."""
    update = int(await memory.client.call("INCR", "updates"))
    await memory.mailbox.put(where, Entry(update, sender, is_alone=False, body=b"-"))
    turn = await take(memory, where)
    now = time.time()
    said = [
        Message(0, 0, "user", text, now, sender, "Ann", (update,), 3),
        Message(0, 0, "assistant", f"You said: {text}", now, message_ids=(update + 1,), tokens=3),
    ]
    await finish(memory, turn, said)
    await memory.learn(where)


async def remember_much(memory: Memory) -> None:
    """Store some of everything: message 3 of the private chat has the canary, and so has Ann."""
    await say(memory, "I sail")
    await say(memory, f"My {CANARY} is called Momo")
    await say(memory, "I row")
    await say(memory, "Pancakes for everybody", GROUP, BOB)
    await say(memory, f"I bring my {CANARY}", GROUP)
    await write(
        memory, HERE, State(orjson.dumps([CANARY]).decode()), Digest(4, f"looked up {CANARY}")
    )
    await write(memory, HERE, synopsis(3, 4), synopsis(1, 2, "boats"))
    await write(memory, ANNS, Fact(0, "Ann sails", (Source(HERE.tag, 1, sender_id=ANN),), 1.0))
    await write(memory, ANNS, Fact(0, f"Ann has a {CANARY}", (Source(HERE.tag, 3),), 1.0))
    group_fact = Fact(0, f"Ann brings a {CANARY}", (Source(GROUP.tag, 3, sender_id=ANN),), 1.0)
    await write(memory, GROUP, group_fact)
    await remind(memory, "feed", 3)
    await remind(memory, "sail", 1)


def synopsis(first: int, last: int, about: str = CANARY) -> Synopsis:
    return Synopsis(0, about, "", "", "", "", "", "", 1, 2, first, last, HERE.tag)


async def remind(memory: Memory, text: str, seq: int) -> WorkItem:
    reminder = WorkItem(ANN, text, due=NEXT_YEAR, zone="UTC", chat_id=7)
    value = f"{ANN}|{seq}|{round(NEXT_YEAR * 1000)}|0|0||{reminder.body}"
    await memory.client.call("HSET", memory.keys.scope(HERE).work, reminder.id, value)
    return reminder


async def exported(memory: Memory, *scopes: Scope) -> list[dict[str, object]]:
    files = [orjson.loads((await memory.exporter.export(each)).content) for each in scopes]
    for each in files:
        del each["exported_at"]
    return files


async def everything_in(memory: Memory) -> bytes:
    names = sorted(await memory.client.call("KEYS", "*"))
    await memory.client.call("CONFIG SET", "rdbcompression", "no")
    values = await memory.client.pipeline([("DUMP", name) for name in names])
    return b"\n".join([*names, *values])


@PASSPHRASES
async def test_an_empty_store_gets_all_back(
    memory: Memory, empty: Memory, file: Path, passphrase: str
) -> None:
    await remember_much(memory)
    counts = await save(memory, file, passphrase)
    assert (counts["scopes"], counts["messages"]) == (3, 10)
    for wrong in ("", "open barley") if passphrase else ():
        with pytest.raises(BackupRefused, match="the passphrase is wrong"):
            await restore(empty, file, passphrase=wrong)
        assert await everything_in(empty) == b""
    assert await restore(empty, file, passphrase=passphrase) == {"restored": 3}
    assert await exported(empty, HERE, GROUP) == await exported(memory, HERE, GROUP)
    history = await ChatHistory.read(empty.histories, HERE)
    found = await history.search("sail", 1)
    assert (found[0].lexical > 0, found[0].dense > 0) == (True, True)
    assert await empty.client.call("TTL", empty.keys.scope(HERE).log) > 80_000
    indexed = await empty.client.call("HKEYS", empty.keys.person(ANN))
    assert sorted(indexed) == [GROUP.tag.encode(), HERE.tag.encode()]
    assert len(await empty.client.call("ZRANGE", empty.keys.work, 0, -1)) == 2
    await say(empty, "I am back")
    assert len(await texts(empty)) == 8


async def forget_a_message(memory: Memory) -> None:
    await memory.forgetting.erase_messages(HERE, [3, 4], "receipt")
    await memory.forgetting.erase_messages(GROUP, [3, 4], "receipt")


async def clear_both(memory: Memory) -> None:
    for where in (HERE, GROUP):
        await clear(memory, 999, where)


Forget = Callable[[Memory], Awaitable[None]]
in_each_way = pytest.mark.parametrize(
    "forget", [forget_a_message, forget_ann, clear_both, erase_all]
)


@in_each_way
async def test_what_was_erased_after_a_backup_stays_erased(
    memory: Memory, empty: Memory, file: Path, forget: Forget
) -> None:
    """The store is lost after the erasure; only the journal was saved since, not encrypted."""
    await remember_much(memory)
    await save(memory, file, "open sesame")
    await forget(memory)
    expected = await exported(memory, HERE, GROUP)
    work = [await memory.work.list_open(each) for each in (HERE, GROUP)]
    journal = await later_journal(memory, file)
    await restore(empty, file, journal, passphrase="open sesame")
    assert CANARY.encode() not in await everything_in(empty)
    assert [await empty.work.list_open(each) for each in (HERE, GROUP)] == work
    restored = await exported(empty, HERE, GROUP)
    for lost, found in zip(expected, restored, strict=True):
        for part in ("messages", "facts", "synopses", "running_state"):
            assert found[part] == lost[part]


@in_each_way
async def test_a_restore_into_the_same_store_brings_nothing_erased_back(
    memory: Memory, file: Path, forget: Forget
) -> None:
    await remember_much(memory)
    await save(memory, file)
    await forget(memory)
    expected = await exported(memory, HERE, GROUP)
    outcomes = await restore(memory, file)
    assert not outcomes["restored"] or forget is forget_ann
    assert CANARY.encode() not in await everything_in(memory)
    assert await exported(memory, HERE, GROUP) == expected


async def test_a_fact_of_an_expired_conversation_stays_if_a_new_message_with_its_number_goes(
    memory: Memory, empty: Memory, file: Path
) -> None:
    await say(memory, "I sail")
    long_ago = Source(HERE.tag, 1, epoch=1_000, sender_id=ANN)
    await write(memory, ANNS, Fact(0, "Ann rows", (long_ago,), 1.0))
    await save(memory, file)
    await memory.forgetting.erase_messages(HERE, [1, 2], "receipt")
    await restore(empty, file, await later_journal(memory, file))
    assert [each.text for each in (await empty.scopes.read(ANNS)).facts] == ["Ann rows"]


async def test_a_clear_after_the_loss_of_the_store_counts_for_an_older_backup(
    memory: Memory, file: Path
) -> None:
    """Epochs begin at 0 again, so the backup has a higher one. Nothing was said since."""
    for _ in range(2):
        await clear(memory, 0)
    await remember_much(memory)
    await save(memory, file)
    await memory.client.call("FLUSHALL")
    await clear(memory)
    assert await restore(memory, file) == {"forgotten": 2, "restored": 1}
    assert await texts(memory) == []


@pytest.mark.parametrize("is_wanted_again", [False, True])
async def test_messages_that_were_hidden_after_a_backup_are_not_recalled(
    memory: Memory, empty: Memory, file: Path, *, is_wanted_again: bool
) -> None:
    await remember_much(memory)
    await say(memory, f"A {CANARY} is no cat")
    await save(memory, file)
    await memory.correcting.delete_fact(HERE, 2)
    if is_wanted_again:
        await save(memory, file)
        await memory.correcting.hide(HERE, [3], hidden=False)
    else:
        await memory.correcting.hide(HERE, [7])
    await restore(empty, file, await later_journal(memory, file))
    restored = await empty.scopes.read(HERE)
    assert restored.hidden.keys() == (set() if is_wanted_again else {3, 4, 7, 8})
    assert restored.hidden == (await memory.scopes.read(HERE)).hidden
    await empty.correcting.hide(HERE, [3, 7], hidden=False)
    assert (await empty.scopes.read(HERE)).hidden.keys() == set()


async def test_messages_are_hidden_again_also_if_the_metadata_was_lost(
    memory: Memory, empty: Memory, file: Path
) -> None:
    await remember_much(memory)
    await memory.client.call("HDEL", memory.keys.scope(HERE).meta, "next_record")
    await save(memory, file)
    await memory.correcting.hide(HERE, [1])
    await restore(empty, file, await later_journal(memory, file))
    assert {1, 2} <= (await empty.scopes.read(HERE)).hidden.keys()
    # If this conversation expires and another one begins, its numbers mean other messages.
    assert (await read_journal(empty.store)).of_scope(HERE, time.time() + 82_800).hidden == []


async def test_a_conversation_with_messages_is_left_alone(
    memory: Memory, empty: Memory, file: Path
) -> None:
    await remember_much(memory)
    await save(memory, file)
    await say(empty, "I was faster")
    assert await restore(empty, file) == {"restored": 2, "kept": 1}
    assert await texts(empty) == ["I was faster", "You said: I was faster"]
    before = await everything_in(empty)
    assert await restore(empty, file) == {"done": 2, "kept": 1}
    assert await everything_in(empty) == before


async def test_a_cancelled_reminder_a_late_one_and_one_that_waits_for_its_button_stay_away(
    memory: Memory, empty: Memory, file: Path
) -> None:
    await say(memory, "Remind me")
    cancelled, kept = await remind(memory, "one", 1), await remind(memory, "two", 1)
    late = WorkItem(ANN, "late", due=1, zone="UTC", chat_id=7)
    waiting = WorkItem(ANN, "Mondays", rule="0 9 * * 1", chat_id=7)  # its zone is being asked for
    for each in (late, waiting):
        value = f"{ANN}|1|{round(each.due * 1000)}|0|0||{each.body}"
        await memory.client.call("HSET", memory.keys.scope(HERE).work, each.id, value)
    await save(memory, file)
    await memory.work.cancel(HERE, cancelled.id)
    await restore(empty, file, await later_journal(memory, file))
    assert [each.id for each in await empty.work.list_open(HERE)] == [kept.id]


async def test_the_journal_names_nobody_and_repeats_no_word(memory: Memory) -> None:
    await remember_much(memory)
    await forget_a_message(memory)
    await forget_ann(memory)
    entries = await memory.client.call("ZRANGE", memory.keys.erasures, 0, -1)
    assert len(entries) >= 4
    for entry in map(bytes.decode, entries):
        assert CANARY not in entry
        assert HERE.tag not in entry
        assert f"|{ANN}|" not in entry


async def test_a_decision_after_a_backup_or_in_the_middle_of_a_restore_stays(
    memory: Memory, empty: Memory, file: Path, dying: DyingClient
) -> None:
    key = memory.keys.access
    await empty.client.call("HSET", key("admitted"), ANN, "1|asked|1", BOB, "1|asked|1")
    await save(empty, file)

    def removal(person: int) -> list[Command]:
        return [("HDEL", key("admitted"), person), ("HSET", key("refused"), person, "2|1")]

    await empty.client.pipeline(removal(BOB))
    journal = await later_journal(empty, file)
    dying.then = partial(memory.client.pipeline, removal(ANN))
    for _ in dying.deaths():
        await memory.client.call("FLUSHALL")
        await restore(memory_of(dying), file, journal)
        members = Members(memory.store)
        await members.refresh()
        left = {ANN} if dying.calls_left >= 0 else set()
        assert [members.admitted, members.refused] == [left, {ANN, BOB} - left]


async def test_documents_of_a_backup_that_is_older_than_the_journal_are_not_restored(
    memory: Memory, empty: Memory, file: Path
) -> None:
    """They never expire, but the journal's entry of a removed one does."""
    shop = Scope.of_namespace("shop")
    here = await memory.scopes.read(shop)
    await Library(memory.scopes).put(here, Origin("prices"), [Section(CANARY)])
    await save(memory, file)
    long_after = memory_of(empty.client, options=replace(OPTIONS, ttl_s=0))
    assert await restore(long_after, file) == {"expired": 1}
    assert await restore(empty, file) == {"restored": 1}
    assert await empty.client.call("TTL", empty.keys.scope(shop).records) == -1


async def test_what_has_expired_is_not_restored(memory: Memory, empty: Memory, file: Path) -> None:
    await remember_much(memory)
    names = memory.keys.scope(HERE)
    await memory.client.call("PEXPIRE", names.meta, 1)
    while await memory.client.call("EXISTS", names.meta):
        pass
    # The index still names it until the next sweep; the rest of it goes within the same second.
    await memory.client.call("UNLINK", *names)
    counts = await save(memory, file)
    assert counts["scopes"] == 2
    assert await restore(empty, file) == {"restored": 2}
