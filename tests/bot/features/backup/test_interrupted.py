"""What a crash or an erasure in the middle of a restore leaves behind."""

import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from memory.erasure.jobs import Job, JobKind
from memory.memory import Memory
from memory.store.commands import Command, Reply, ScriptCall
from memory.store.errors import StoreUnavailable
from memory.text.tokens import TokenCounter
from tests.bot.features.backup.conftest import restore, save
from tests.bot.features.backup.test_restoring import CANARY, everything_in, exported, remember_much
from tests.conftest import Doomed
from tests.memory.clients import DyingClient
from tests.memory.conftest import OPTIONS
from tests.memory.turns import ANN, GROUP, HERE, forget_ann
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
async def test_a_restore_that_died_after_any_command_goes_on_when_it_is_run_again(
    memory: Memory, empty: Memory, file: Path, other_server: ValkeyServer, tokens: TokenCounter
) -> None:
    """It dies after its first command, then after some more, and so on; then it is run again."""
    await remember_much(memory)
    await save(memory, file)
    expected = await exported(memory, HERE, GROUP)
    await restore(empty, file)
    keys = await content_of(empty)
    other_server.ask("FLUSHALL")
    client = await StepwiseClient.open(other_server.url)
    dying = Memory(client, 42, tokens, None, OPTIONS)
    deaths, is_over = 0, False
    while not is_over:
        other_server.ask("FLUSHALL")
        client.calls_left = 8 * deaths
        try:
            await restore(dying, file)
        except StoreUnavailable:
            deaths += 1
            await restore(empty, file)
            assert await exported(empty, HERE, GROUP) == expected
            assert await content_of(empty) == keys
        else:
            is_over = True
    await client.close()
    assert deaths > 10


async def content_of(memory: Memory) -> list[bytes]:
    """Return the names of all keys, without those that a restore that died leaves for an hour."""
    names: list[bytes] = await memory.client.call("KEYS", "*")
    return sorted(name for name in names if b"restoring" not in name)


@ONCE
async def test_an_erasure_during_a_restore_wins(
    memory: Memory, empty: Memory, file: Path, other_server: ValkeyServer, tokens: TokenCounter
) -> None:
    """A bot that runs forgets Ann after the first command of a restore, after some more, ..."""
    await remember_much(memory)
    await save(memory, file)
    client = await StepwiseClient.open(other_server.url)
    client.then = partial(forget_ann, empty)
    commands, is_over = 1, False
    while not is_over:
        other_server.ask("FLUSHALL")
        client.calls_left = commands
        await restore(Memory(client, 42, tokens, None, OPTIONS), file)
        is_over = client.calls_left >= 0
        assert is_over or CANARY.encode() not in await everything_in(empty), commands
        commands += 8
    await client.close()
    assert commands > 30


@ONCE
async def test_a_journal_of_any_length_can_be_read_again(
    memory: Memory, empty: Memory, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was one record, so a chunk could become larger than a reader takes."""
    monkeypatch.setattr("bot.features.backup.backup_file._MAX_OPEN_BYTES", 2**21)
    entries = [f"{number:032}|c|1|{number:0999}" for number in range(3_000)]
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
