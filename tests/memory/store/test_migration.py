"""What the version before stored opens in this one: its messages, facts, state and documents.

`layout_1.json` is what that version stored of one bot, key by key, with bytes as Latin-1.
`first_landed.json` is the same of the first version that landed (commit bb54f3e), which was run to
have two conversations and a group talk, the group move, and one conversation cleared.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import structlog

from memory.behaviors.behavior_store import stored_by_behaviors
from memory.documents.library import documents
from memory.erasure.jobs import Job
from memory.memory import Memory
from memory.queue.open_turn import OpenTurn
from memory.scopes.delta import Cursor
from memory.scopes.field import Field, read_field
from memory.scopes.fields import Digest, Failures, Question, ToolWrites
from memory.scopes.history import ChatHistory
from memory.scopes.writes import Keep, Remember
from memory.store.client import RedisClient
from memory.store.commands import Arg, Command, Reply, ScriptCall
from memory.store.errors import StoreUnavailable
from memory.store.keys import Scope
from memory.store.migration import LAYOUT, LayoutTooNew
from memory.text.tokens import TokenCounter
from tests.memory.conftest import OPTIONS
from tests.memory.words_embedder import WordsEmbedder
from tests.valkey import ValkeyServer

BOT = 42
ANN = 7
HERE = Scope.of_chat(7)
GROUP = Scope.of_chat(-7)
OTHER = Scope.of_chat(9)
MANUAL = Scope.of_namespace("manual")
MOVED = Scope.of_chat(-100)
FIRST_LANDED = json.loads((Path(__file__).parent / "first_landed.json").read_text())
STORED = json.loads((Path(__file__).parent / "layout_1.json").read_text())


class DyingClient(RedisClient):
    """Sends so many commands or pipelines; then the process is dead."""

    calls_left = 1

    async def call(self, *command: Arg) -> Reply:
        self._live()
        return await super().call(*command)

    async def pipeline(self, commands: Sequence[Command | ScriptCall]) -> list[Reply]:
        self._live()
        return await super().pipeline(commands)

    def _live(self) -> None:
        self.calls_left -= 1
        if self.calls_left < 0:
            raise StoreUnavailable("dead")


@pytest.fixture(params=["valkey_server", "cluster_server"], ids=["server", "cluster"])
def valkey(request: pytest.FixtureRequest) -> str:
    server: ValkeyServer = request.getfixturevalue(request.param)
    server.ask("FLUSHALL")
    return server.url


@pytest.fixture
async def memory(store: RedisClient, tokens: TokenCounter) -> Memory:
    await write(store, STORED)
    return Memory(store, BOT, tokens, WordsEmbedder(dimensions=8), OPTIONS)


@pytest.fixture
async def second(valkey: str, tokens: TokenCounter) -> AsyncIterator[Memory]:
    """Give the memory of another process."""
    client = await RedisClient.open(valkey)
    yield Memory(client, BOT, tokens, WordsEmbedder(dimensions=8), OPTIONS)
    await client.close()


async def write(store: RedisClient, stored: Mapping[str, Any]) -> None:
    """Write these keys. The index of dead letters gets the time of now, as if just set aside."""
    for name, key in stored.items():
        for command in _writing(name, key["type"], key["value"]):
            await store.call(*command)
        if key["ttl_s"] > 0:
            await store.call("EXPIRE", name, key["ttl_s"])
        if name.endswith(":deadletters"):
            for member, _ in key["value"]:
                await store.call("ZADD", name, int(time.time()), _bytes(member))


def _writing(name: str, kind: str, value: object) -> list[Command]:
    if isinstance(value, str):
        return [("SET", name, _bytes(value))]
    if isinstance(value, dict):
        return [("HSET", name, _bytes(field), _bytes(each)) for field, each in value.items()]
    assert isinstance(value, list)
    if kind == "zset":
        return [("ZADD", name, score, _bytes(member)) for member, score in value]
    return [
        ("XADD", name, entry_id, *(_bytes(part) for pair in fields.items() for part in pair))
        for entry_id, fields in value
    ]


def _bytes(text: str) -> bytes:
    return text.encode("latin-1")


async def is_as_it_was(memory: Memory) -> None:
    """Check that all that the version before had stored is found."""
    history = await ChatHistory.read(memory.histories, HERE)
    said = [message.text for message in history.messages if message.role == "user"]
    assert len(said) == 3
    found = await history.search("called Aurora", 2)
    assert found
    # Its vectors were made by another recipe. They count again once learning has embedded the text.
    assert (found[0].lexical > 0, found[0].dense) == (True, 0)
    here, hers = await memory.scopes.read(HERE), await memory.scopes.read(Scope.of_person(ANN))
    assert [fact.text for fact in hers.facts][:1] == ["Ann sails on the Aurora"]
    assert hers.facts[0].sources[0].tag == HERE.tag
    assert here.generation
    assert (here.state, here.is_state_untrusted) == ('{"first_name":"Ann"}', True)
    assert here.watermark("running_state") == 4
    assert [synopsis.likely_request for synopsis in here.synopses] == ["a boat"]
    assert here.all(Digest) == [Digest(6, "calculate(1)")]
    assert here.get(Failures, "facts") == Failures("facts", 2, 1_000)
    question = here.get(Question, "nonce")
    assert question
    assert question.write == Remember("rows", sender_id=ANN)
    assert [each.writes for each in here.all(ToolWrites)] == [
        (Remember("Ann rows", sender_id=ANN), Keep("diary", "oar", "wood"))
    ]
    assert stored_by_behaviors(here) == {"diary": {"boat": "Aurora"}}
    assert [each.title for each in documents(here).values()] == ["manual.txt"]
    shared = await memory.scopes.read(MANUAL)
    assert [each.title for each in documents(shared).values()] == ["shared.txt"]
    assert [chunk.text for chunk in shared.chunks] == ["The harbor closes at 8"]
    group = await ChatHistory.read(memory.histories, Scope.of_chat(-100))
    assert (group.conversation, len(group.messages)) == (GROUP, 2)
    assert [letter.conversation for letter in await memory.dead_letters.listed()] == [OTHER]


async def has_only_fields_that_are_known(memory: Memory) -> None:
    for scope in (HERE, GROUP, MANUAL, Scope.of_person(ANN)):
        for name, stored in (await memory.scopes.read(scope)).fields.items():
            assert isinstance(read_field(name, stored), Field)


async def test_a_store_of_the_version_before_opens(memory: Memory) -> None:
    await memory.migrate()
    await is_as_it_was(memory)
    await has_only_fields_that_are_known(memory)


async def test_learning_goes_on_from_where_the_version_before_stopped(memory: Memory) -> None:
    await memory.migrate()
    await memory.learn(HERE)
    hers = await memory.scopes.read(Scope.of_person(ANN))
    assert [fact.text for fact in hers.facts] == ["Ann sails on the Aurora", "Ann rows"]
    here = await memory.scopes.read(HERE)
    assert stored_by_behaviors(here) == {"diary": {"boat": "Aurora", "oar": "wood"}}


async def test_no_old_name_is_left_and_expiries_stay(memory: Memory) -> None:
    keys, call = memory.keys, memory.client.call
    await memory.migrate()
    assert await call("GET", keys.ballast) is None
    assert await call("HGETALL", keys.capacity) == {
        b"reported:full": b"1",
        b"dropped_vectors": b"3",
        b"reported_vectors": b"3",
    }
    names = {name.decode() for name in await call("KEYS", f"{keys.prefix}*")}
    assert not {name for name in names if name.endswith((":dead", "doorbell", "plan", "reserve"))}
    for name in names & STORED.keys():
        left_s = await call("TTL", name)
        assert (left_s > 0) == (STORED[name]["ttl_s"] > 0), name


async def test_a_migration_that_died_in_the_middle_goes_on(
    memory: Memory, valkey: str, tokens: TokenCounter
) -> None:
    """It dies before its first call to the store, then before its second, and so on."""
    client = await DyingClient.open(valkey)
    deaths = 0
    while True:
        client.calls_left = deaths
        try:
            await Memory(client, BOT, tokens, None, OPTIONS).migrate()
        except StoreUnavailable:
            deaths += 1
            await memory.client.call("DEL", memory.keys.migrator)  # the lease of the dead is over
        else:
            break
    await client.close()
    assert deaths > 10
    await memory.migrate()
    await is_as_it_was(memory)


async def test_one_process_migrates_and_the_others_wait(memory: Memory, second: Memory) -> None:
    await asyncio.gather(memory.migrate(), second.migrate())
    await is_as_it_was(memory)
    await is_as_it_was(second)


async def test_a_newer_layout_is_refused_with_what_to_do(memory: Memory) -> None:
    await memory.client.call("SET", memory.keys.layout, LAYOUT + 1)
    with pytest.raises(LayoutTooNew, match="start the version that wrote it"):
        await memory.migrate()


async def test_documents_of_a_namespace_are_found_though_no_index_names_it(memory: Memory) -> None:
    """The index forgets a namespace after a year, but its documents stay."""
    await memory.client.call("ZREM", memory.keys.index_of(MANUAL), MANUAL.tag)
    await memory.migrate(["manual"])
    assert documents(await memory.scopes.read(MANUAL))


async def test_what_the_first_landed_version_stored_opens(
    store: RedisClient, tokens: TokenCounter
) -> None:
    """It knew messages, vectors, groups that move, and clears. One message still waits."""
    memory = Memory(store, BOT, tokens, WordsEmbedder(dimensions=8), OPTIONS)
    await write(store, FIRST_LANDED)
    with structlog.testing.capture_logs() as said:
        await memory.migrate()
    assert [line["scopes"] for line in said if line["event"] == "stored data migrated"] == [3]
    history = await ChatHistory.read(memory.histories, HERE)
    assert [message.text for message in history.messages] == [
        *("My boat is called Aurora", "A fine name", "She sails from Lisbon", "Lovely"),
    ]
    assert (await history.search("Aurora", 1))[0].seq == 1
    await memory.learn(HERE)
    history = await ChatHistory.read(memory.histories, HERE)
    assert (await history.search("Aurora", 1))[0].dense > 0
    moved = await ChatHistory.read(memory.histories, await memory.mailbox.resolve(MOVED))
    assert (moved.conversation, len(moved.messages)) == (GROUP, 4)
    assert (await ChatHistory.read(memory.histories, OTHER)).messages == []
    waiting = await memory.turns.acquire(HERE, Cursor())
    assert isinstance(waiting, OpenTurn)
    assert [entry.update_id for entry in waiting.entries] == [60]
    await memory.jobs.start_job(Job("job", "forget", ANN, 99, time.time(), b""))
    assert await memory.jobs.run_job("job")
    left = await everything_of(store)
    assert [word for word in (b"Aurora", b"We sail", b"pancakes") if word in left] == [b"pancakes"]


async def everything_of(store: RedisClient) -> bytes:
    await store.call("CONFIG SET", "rdbcompression", "no")
    names = await store.call("KEYS", "*")
    return b"".join(await store.pipeline([("DUMP", name) for name in names]))


async def test_progress_is_said_while_many_scopes_are_migrated(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.store.migration._PROGRESS_S", 0.0)
    with structlog.testing.capture_logs() as said:
        await memory.migrate()
    progress = [line for line in said if line["event"] == "migrating stored data"]
    assert progress
    assert all(0 < line["scopes"] <= line["of"] == 5 for line in progress)
