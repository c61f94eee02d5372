"""What b14a1af stored opens: its messages, facts, state, documents, reminders, and an open turn.

`b14a1af.json` is what that version stored of one bot, key by key, with bytes as Latin-1.
"""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bot.reply.parts import Part
from bot.turn.outbox import Outbox
from memory.behaviors.behavior_store import stored_by_behaviors
from memory.documents import Chunk, documents
from memory.memory import Memory
from memory.queue.open_turn import OpenTurn
from memory.scopes.fields import Digest, Failures, Field, ToolWrites, read_field
from memory.scopes.history import ChatHistory
from memory.scopes.log import Cursor
from memory.scopes.writes import Keep, Remember
from memory.store.client import RedisClient
from memory.store.commands import Command
from memory.store.keys import Scope
from memory.store.store import LAYOUT, OtherLayout
from tests.memory.conftest import memory_of
from tests.memory.turns import HERE
from tests.memory.words_embedder import WordsEmbedder
from tests.valkey import ValkeyServer

BOT = 42
ANN = 7
GROUP = Scope.of_chat(-7)
OTHER = Scope.of_chat(9)
MANUAL = Scope.of_namespace("manual")
WITH_A_REPLY = Scope.of_chat(11)
STORED = json.loads((Path(__file__).parent / "b14a1af.json").read_text())


@pytest.fixture(params=["valkey_server", "cluster_server"], ids=["server", "cluster"])
def valkey(request: pytest.FixtureRequest) -> str:
    server: ValkeyServer = request.getfixturevalue(request.param)
    server.ask("FLUSHALL")
    return server.url


@pytest.fixture
async def memory(store: RedisClient) -> Memory:
    await write(store, STORED)
    return memory_of(store, WordsEmbedder(dimensions=8), bot=BOT)


async def write(store: RedisClient, stored: Mapping[str, Any]) -> None:
    """Write these keys. The index of dead letters gets the time of now, as if just set aside."""
    for name, key in stored.items():
        for command in _writing(name, key["type"], key["value"]):
            await store.call(*command)
        if key["ttl_s"] > 0:
            await store.call("EXPIRE", name, key["ttl_s"])
        if name == f"r:{BOT}:dead_letters":
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


async def test_a_store_of_b14a1af_opens(memory: Memory) -> None:
    await memory.take_layout()
    history = await ChatHistory.read(memory.histories, HERE)
    assert len([message.text for message in history.messages if message.role == "user"]) == 4
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
    wanted = [(Remember("Ann rows", sender_id=ANN), Keep("diary", "oar", "wood"))]
    assert [each.writes for each in here.all(ToolWrites)] == wanted
    assert stored_by_behaviors(here) == {"diary": {"boat": "Aurora"}}
    assert [each.title for each in documents(here).values()] == ["manual.txt"]
    shared = await memory.scopes.read(MANUAL)
    assert [each.title for each in documents(shared).values()] == ["shared.txt"]
    assert [chunk.text for chunk in shared.of_kind(Chunk)] == ["The harbor closes at 8"]
    group = await ChatHistory.read(memory.histories, Scope.of_chat(-100))
    assert (group.conversation, len(group.messages)) == (GROUP, 2)
    assert [letter.conversation for letter in await memory.dead_letters.listed()] == [OTHER]

    for scope in (HERE, GROUP, MANUAL, Scope.of_person(ANN)):
        for name, stored in (await memory.scopes.read(scope)).fields.items():
            assert isinstance(read_field(name, stored), Field)


async def test_learning_goes_on_from_where_that_version_stopped(memory: Memory) -> None:
    await memory.take_layout()
    await memory.learn(HERE)
    hers = await memory.scopes.read(Scope.of_person(ANN))
    assert [fact.text for fact in hers.facts] == ["Ann sails on the Aurora", "Ann rows"]
    here = await memory.scopes.read(HERE)
    assert stored_by_behaviors(here) == {"diary": {"boat": "Aurora", "oar": "wood"}}


async def test_its_reminders_and_the_reply_that_it_had_stored_are_sent(memory: Memory) -> None:
    await memory.take_layout()
    reminders = memory.work.of_kind("reminder")
    assert {each.text for each in await reminders.list_open(HERE)} == {
        *("Call Ben", "Water the plants")
    }
    stored = await memory.turns.acquire(WITH_A_REPLY, Cursor())
    assert isinstance(stored, OpenTurn)
    assert Outbox.from_bytes(stored.outbox).parts == (Part("A stored reply"),)


@pytest.mark.parametrize(("layout", "what"), [(LAYOUT + 1, "or a newer one"), (1, "23 November")])
async def test_another_layout_is_refused_with_what_to_do(
    memory: Memory, layout: int, what: str
) -> None:
    await memory.client.call("SET", memory.keys.layout, layout)
    with pytest.raises(OtherLayout, match=what):
        await memory.take_layout()


async def test_an_empty_store_gets_our_layout_and_data_without_one_are_refused(
    store: RedisClient,
) -> None:
    empty = memory_of(store, bot=BOT)
    await empty.take_layout()
    await empty.take_layout()
    await write(store, STORED)
    await store.call("DEL", empty.keys.layout)
    with pytest.raises(OtherLayout):
        await empty.take_layout()
