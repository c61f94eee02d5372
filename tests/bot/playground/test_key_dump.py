"""What is stored of one scope can be listed and read, whatever its type."""

import pytest

from bot.playground.inspector import KeyDump, dump_keys
from memory.memory import Memory
from memory.scopes.history import ChatHistory
from memory.store.client import RedisClient
from memory.store.keys import Scope
from tests.bot.playground.bare_memory import bare_memory

HERE, THERE = Scope.of_chat(7), Scope.of_chat(8)


@pytest.fixture
async def memory(store: RedisClient) -> Memory:
    return await bare_memory(store)


async def held(memory: Memory, conversation: Scope = HERE) -> dict[str, KeyDump]:
    found = await dump_keys(memory.client, memory.keys, conversation)
    return {holding.kind: holding for holding in found}


async def test_nothing_is_held_of_a_conversation_that_never_was(memory: Memory) -> None:
    assert await held(memory) == {}


async def test_messages_are_shown_with_size_and_expiry_and_only_of_this_scope(
    memory: Memory,
) -> None:
    history = await ChatHistory.read(memory.histories, HERE)
    await history.append_user_message("The boat is called Aurora", 1_762_948_800.0)
    found = await held(memory)
    log = found["log"]
    assert (log.type, log.count) == ("stream", 1)
    assert log.nbytes > len("The boat is called Aurora")
    assert 0 < log.expires_s <= 86_400
    [(entry, fields)] = log.entries
    assert entry == "1-0"
    assert "t: The boat is called Aurora" in fields
    assert dict(found["meta"].entries)["next_seq"] == "1"
    assert await held(memory, THERE) == {}


async def test_every_type_is_read_the_newest_last(memory: Memory) -> None:
    names = memory.keys.scope(HERE)
    mail = [part for n in range(25) for part in (n, f"{n}|1|t|[]")]
    await memory.client.pipeline(
        [
            ("ZADD", names.mailbox, *mail),
            ("SET", names.lease, "1:token", "EX", 30),
            ("HSET", names.turn, "b", "2", "a", "1"),
            ("XADD", names.vectors, "3-0", "v", bytes(range(256))),
        ]
    )
    found = await held(memory)
    assert found["mailbox"].count == 25
    assert found["mailbox"].entries[-1] == ("24", "24|1|t|[]")
    assert len(found["mailbox"].entries) == 20
    assert found["lease"].entries == (("", "1:token"),)
    assert found["turn"].entries == (("a", "1"), ("b", "2"))
    assert found["turn"].expires_s == -1
    assert found["vec"].entries == (("3-0", "v: 256 bytes"),)


async def test_a_long_value_is_cut(memory: Memory) -> None:
    await memory.client.call("SET", memory.keys.scope(HERE).lease, "x" * 10_000)
    [(_, value)] = (await held(memory))["lease"].entries
    assert value == "x" * 600 + " …"
