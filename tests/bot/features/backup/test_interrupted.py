"""What a crash or an erasure in the middle of a restore leaves behind."""

import asyncio
import time
from argparse import Namespace
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from bot.features.backup.backup_file import BackupRefused
from bot.features.backup.command_line import run_backup
from bot.features.backup.erasures import read_journal
from memory.erasure.jobs import Job, JobKind
from memory.memory import Memory
from memory.store.client import RedisClient
from memory.store.commands import Command, Reply, ScriptCall
from memory.store.errors import StoreUnavailable
from memory.store.keys import Scope
from memory.store.store import LAYOUT, pages_of_scopes
from tests.bot.features.backup.conftest import later_journal, restore, save
from tests.bot.features.backup.test_restoring import (
    CANARY,
    everything_in,
    exported,
    remember_much,
    say,
)
from tests.bot.features.backup.test_running import settings_of
from tests.conftest import Doomed
from tests.memory import clients
from tests.memory.clients import DyingClient, full_redis
from tests.memory.conftest import memory_of
from tests.memory.turns import ANN, BOB, GROUP, HERE, forget_ann, texts
from tests.valkey import ValkeyServer

ONCE = pytest.mark.parametrize("valkey", ["valkey_server"], indirect=True)


class StepwiseClient(DyingClient):
    """May be interrupted between the commands of a pipeline, too."""

    calls_left = 1_000

    async def pipeline(self, commands: Sequence[Command | ScriptCall]) -> list[Reply]:
        replies: list[Reply] = []
        for each in commands:
            replies += await super().pipeline([each])
        return replies


@ONCE
@pytest.mark.parametrize("dies", [True, False], ids=["it dies", "another one dies meanwhile"])
async def test_a_restore_that_died_or_met_one_that_died_is_whole_when_it_is_run_again(
    memory: Memory, empty: Memory, file: Path, other_server: ValkeyServer, *, dies: bool
) -> None:
    """Two used the same staged names, and a group was restored without its messages."""
    await remember_much(memory)
    await save(memory, file)
    expected = await exported(memory, HERE, GROUP)
    await restore(empty, file)
    keys = await content_of(empty)
    other = await StepwiseClient.open(other_server.url)
    staged: list[list[bytes]] = []

    async def begin_another() -> None:
        other.calls_left = 12
        with suppress(StoreUnavailable):
            await restore(memory_of(other), file)
        staged.append(await empty.client.call("KEYS", "*restoring*"))

    async for _ in restores(other_server, file, None if dies else begin_another):
        await restore(empty, file)
        assert await exported(empty, HERE, GROUP) == expected
        assert await content_of(empty) == keys
    assert dies or staged[0]  # the first time, only the other one has written
    await other.close()


async def content_of(memory: Memory) -> list[bytes]:
    """Return the names of all keys, without what a restore that died has staged."""
    names: list[bytes] = await memory.client.call("KEYS", "*")
    return sorted(name for name in names if b"restoring" not in name)


Then = Callable[[], Awaitable[object]]


async def restores(
    server: ValkeyServer, file: Path, then: Then | None = None
) -> AsyncIterator[bool]:
    """Restore with `then`, or a death, ever later; yield whether the restore was over before it."""
    client = await StepwiseClient.open(server.url)
    client.then, commands, is_over = then, 0, False
    while not is_over:
        server.ask("FLUSHALL")
        client.calls_left = commands
        with suppress(StoreUnavailable):
            await restore(memory_of(client), file)
        is_over = client.calls_left >= 0
        yield is_over
        commands += 8
    await client.close()
    assert commands > 80


@ONCE
async def test_an_erasure_during_a_restore_wins(
    memory: Memory, empty: Memory, file: Path, other_server: ValkeyServer, dying: DyingClient
) -> None:
    await remember_much(memory)
    await save(memory, file)
    async for is_over in restores(other_server, file, partial(forget_ann, empty)):
        assert is_over or CANARY.encode() not in await everything_in(empty)
    dying.then = partial(memory.client.call, "ZADD", memory.keys.erasures, 1, "id|later|1")
    for dying.calls_left in range(2):
        await memory.client.call("FLUSHALL")
        with pytest.raises(BackupRefused, match="in the store holds an entry, which this version"):
            await restore(memory_of(dying), file)


@ONCE
async def test_what_is_staged_expires_soon_and_a_restore_that_paused_so_long_begins_it_again(
    memory: Memory, empty: Memory, file: Path, other_server: ValkeyServer
) -> None:
    """No erasure finds it, and it stayed for an hour. Others may be erased meanwhile, too.

    If Redis evicted one of the staged keys, a conversation was restored without its messages.
    It stayed until it expired if another restore was faster.
    """
    await remember_much(memory)
    await save(memory, file)

    async def expire() -> None:
        for name in await empty.client.call("KEYS", "*restoring*"):
            assert await empty.client.call("TTL", name) <= 120
            await empty.client.call("UNLINK", name)

    expected = await exported(memory, HERE, GROUP)
    async for _ in restores(other_server, file, expire):
        assert await exported(empty, HERE, GROUP) == expected
    async for _ in restores(other_server, file, partial(restore, empty, file)):
        assert await empty.client.call("KEYS", "*restoring*") == []

    async def erase() -> None:
        await empty.store.journal.note_parts(next(others), (0, 1), ([1], [], []))
        client.calls_left = 1

    other_server.ask("FLUSHALL")
    client, others = await DyingClient.open(other_server.url), map(Scope.of_chat, range(99, 999))
    client.then = erase
    await restore(memory_of(client), file)
    assert await exported(empty, HERE, GROUP) == expected

    async def evict() -> None:
        for name in await empty.client.call("KEYS", "*restoring_log"):
            await empty.client.call("UNLINK", name)
        client.calls_left = 0

    other_server.ask("FLUSHALL")
    client.then = evict
    with pytest.raises(BackupRefused, match="set maxmemory-policy to noeviction"):
        await restore(memory_of(client), file)
    await client.close()
    assert await texts(empty) == []


async def test_a_restart_or_a_new_time_between_two_pages_leaves_out_no_scope_and_no_erasure(
    tmp_path: Path,
) -> None:
    """They were read with a cursor, which another server takes for another place.

    The next page was counted from the last entry of a page, which may get a new time.
    """
    with ValkeyServer(tmp_path, "--appendonly", "yes") as server:
        client = await clients.InterruptedClient.open(server.url)
        store = memory_of(client).store
        scopes = {*map(Scope.of_chat, range(1, 2_501))}
        entries = {f"{number:032}|x|0a": 1.5 + number // 3 for number in range(2_500)}
        await client.pipeline(
            [("ZADD", store.keys.erasures, repr(at), each) for each, at in entries.items()]
        )
        await client.pipeline([store.indexing(each) for each in scopes])

        async def restart() -> None:
            server.stop()
            server.start()
            await client.call("ZADD", store.keys.erasures, 9_999, [*entries][999])

        client.behind |= dict.fromkeys(("ZRANGEBYSCORE", "ZRANGE"), restart)
        assert (await read_journal(store)).entries.keys() == entries.keys()
        assert {
            each async for page in pages_of_scopes(client, store.keys) for each in page
        } == scopes
        assert not client.behind
        await client.close()


@ONCE
async def test_a_journal_of_any_length_can_be_read_again(
    memory: Memory, empty: Memory, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.features.backup.backup_file._MAX_OPEN_BYTES", 2**21)
    entries = [f"{number:032}|x|{number:0999}" for number in range(3_000)]
    scored = [part for entry in entries for part in (time.time(), entry)]
    await memory.client.call("ZADD", memory.keys.erasures, *scored)
    await save(memory, file)
    await restore(empty, file)
    assert await empty.client.call("ZCARD", empty.keys.erasures) == len(entries)


@pytest.mark.parametrize("kind", ["forget", "all", "chat"])
async def test_what_an_unfinished_job_will_erase_does_not_come_back_from_a_backup(
    memory: Memory, empty: Memory, file: Path, dying: DyingClient, doomed: Doomed, kind: JobKind
) -> None:
    """Its worker dies before it begins, or between two steps; later the store is lost."""
    target = {"forget": ANN, "all": 0, "chat": HERE.chat_id}[kind]
    for dying.calls_left in (0, 12, 24):
        await memory.client.call("FLUSHALL")
        await empty.client.call("FLUSHALL")
        await remember_much(memory)
        await memory.jobs.start_job(Job("job", kind, target, 999, time.time(), b""))
        with suppress(StoreUnavailable):
            await doomed().jobs.run_job("job")
        await save(memory, file)
        await restore(empty, file)
        left = await everything_in(empty)
        assert b"I sail" not in left
        assert (CANARY.encode() in left) == (kind == "chat")  # it was said in the group, too
        assert (b"Pancakes" in left) == (kind != "all")


async def test_a_journal_alone_has_what_an_unfinished_job_will_erase(
    memory: Memory, empty: Memory, file: Path
) -> None:
    """What is said after the erasure stays, also if its receipt has expired."""
    await remember_much(memory)
    await save(memory, file)
    await memory.jobs.start_job(Job("job", "all", 0, 999, time.time(), b""))
    await restore(empty, file, await later_journal(memory, file))
    assert CANARY.encode() not in await everything_in(empty)
    await empty.client.call("FLUSHALL")
    await memory.scopes.wipe(HERE, "job", "999", time.time())
    await memory.client.call("DEL", memory.keys.scope(HERE).confirm)
    await memory.client.call("SET", "updates", 2_000)
    await say(memory, "Said later")
    await save(memory, file)
    await restore(empty, file)
    assert await texts(empty) == ["Said later", "You said: Said later"]


@ONCE
async def test_a_backup_writes_no_entry_into_the_store_and_works_if_redis_is_full(
    memory: Memory, empty: Memory, file: Path, valkey: str
) -> None:
    await remember_much(memory)
    await memory.client.call("SET", memory.keys.layout, LAYOUT)
    await memory.jobs.start_job(Job("job", "all", 0, 999, time.time(), b""))
    async with full_redis(memory.client):
        options = Namespace(file=file, journal=False)
        assert await asyncio.to_thread(run_backup, settings_of(valkey), options) == 0
    assert not await memory.client.call("EXISTS", memory.keys.erasures, memory.keys.erasure_secrets)
    assert await restore(empty, file, passphrase="barley") == {"forgotten": 3}


@ONCE
async def test_a_moved_groups_new_chat_is_saved_and_not_noted_as_erased(
    memory: Memory, empty: Memory, file: Path
) -> None:
    new = Scope.of_chat(-1001)
    await say(memory, "Pancakes", GROUP, BOB)
    await memory.mailbox.move(GROUP, new)
    await memory.jobs.start_job(Job("job", "chat", new.chat_id, 999, time.time(), b""))
    await save(memory, file)
    assert await restore(empty, file) == {"forgotten": 1, "restored": 1}
    assert await empty.mailbox.resolve(new) == GROUP


class InterruptedClient(RedisClient):
    """Awaits `then` right before a backup looks whether a job has erased a scope."""

    then: Then

    async def pipeline(self, commands: Sequence[Command | ScriptCall]) -> list[Reply]:
        names = ["" if isinstance(each, ScriptCall) else each[0] for each in commands]
        if "HEXISTS" not in names:
            return await super().pipeline(commands)
        at = names.index("HEXISTS")
        replies = await super().pipeline(commands[:at])
        await self.then()
        return replies + await super().pipeline(commands[at:])


@ONCE
@pytest.mark.parametrize("ends", [True, False], ids=["it ends", "its worker dies behind the wipe"])
async def test_a_job_that_erases_during_a_backup_takes_all_that_was_said_before_and_no_more(
    memory: Memory, empty: Memory, file: Path, valkey: str, *, ends: bool
) -> None:
    await say(memory, "I sail")
    await memory.client.call("SET", "updates", 2_000)
    await memory.jobs.start_job(Job("job", "chat", HERE.chat_id, 999, time.time(), b""))
    client = await InterruptedClient.open(valkey)
    wanted = {"receipt": "job", "last_update": "999", "until": time.time(), "ttl_s": 3_600}
    wipe = partial(memory.store.run, "wipe", HERE, wanted)
    client.then = partial(memory.jobs.run_job, "job") if ends else wipe
    await save(memory_of(client), file)
    await client.close()
    await restore(empty, file)
    assert await texts(empty) == []
    await say(memory, "Said later")
    await save(memory, file.with_name("later"))
    await restore(empty, file, file.with_name("later"))
    assert await texts(empty) == ["Said later", "You said: Said later"]
