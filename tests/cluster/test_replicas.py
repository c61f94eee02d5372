"""With `INTAKE_WAIT_REPLICAS` an update counts as taken when replicas have it, and not before."""

from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path

import pytest

from memory.keys import Conversation
from memory.memory import Memory, MemoryOptions
from memory.protocol.mailbox import Entry, Outcome
from memory.protocol.turns import TurnTimes
from memory.redis_client import RedisClient
from memory.store_errors import StoreUnavailable
from memory.tokens import TokenCounter
from tests.cluster.nodes import ThreeNodeCluster, place_of
from tests.valkey import HOST, ValkeyServer

HERE = Conversation.of_chat(7)
ENTRY = Entry(1, 7, is_command=False, body=b"words")


@pytest.fixture
def primary(tmp_path: Path) -> Iterator[ValkeyServer]:
    primary = ValkeyServer(tmp_path, "--repl-diskless-sync-delay", "0")
    primary.start()
    yield primary
    primary.stop()


@pytest.fixture
def replica(primary: ValkeyServer, tmp_path: Path) -> Iterator[ValkeyServer]:
    folder = tmp_path / "replica"
    folder.mkdir()
    replica = ValkeyServer(folder, "--replicaof", f"{HOST} {primary.port}")
    replica.start()
    while b"master_link_status:up" not in replica.ask("INFO replication"):
        pass
    yield replica
    replica.stop()


@pytest.fixture
async def memory(primary: ValkeyServer, tokens: TokenCounter) -> AsyncIterator[Memory]:
    client = await RedisClient.open(primary.url)
    options = MemoryOptions(86_400, 50, 1_000_000, TurnTimes(), wait_replicas=1)
    yield Memory(client, 42, tokens, None, options)
    await client.close()


async def test_what_a_replica_has_is_taken(memory: Memory, replica: ValkeyServer) -> None:
    assert await memory.mailbox.put(HERE, ENTRY) is Outcome.TAKEN
    seen = memory.keys.conversation(HERE).seen
    assert b":1\r\n" in replica.ask(f"EXISTS {seen}")


async def test_what_no_replica_has_is_not_taken_until_one_has_it(
    memory: Memory, replica: ValkeyServer
) -> None:
    replica.pause()
    try:
        for _ in range(2):  # delivered again it is a duplicate, which no replica has either
            with pytest.raises(StoreUnavailable):
                await memory.mailbox.put(HERE, ENTRY)
        assert not await memory.client.call("EXISTS", memory.keys.doorbell)
    finally:
        replica.resume()
    assert await memory.mailbox.put(HERE, ENTRY) is Outcome.DUPLICATE
    assert await memory.client.call("XLEN", memory.keys.doorbell) == 1


async def test_without_replicas_nothing_is_taken(memory: Memory) -> None:
    with pytest.raises(StoreUnavailable):
        await memory.mailbox.put(HERE, ENTRY)


async def test_on_a_cluster_the_index_is_waited_for_too(
    cluster: ThreeNodeCluster, tokens: TokenCounter
) -> None:
    client = await RedisClient.open(cluster.url)
    options = MemoryOptions(86_400, 50, 1_000_000, TurnTimes(), wait_replicas=1)
    memory = Memory(client, 42, tokens, None, options)
    chats = map(Conversation.of_chat, count(1))
    places = ((chat, place_of(memory.keys.index_of(chat))) for chat in chats)
    apart, known_at = next(
        (chat, place)
        for chat, place in places
        if place != place_of(memory.keys.conversation(chat).mailbox)
    )
    cluster.cut_off(known_at)
    with pytest.raises(StoreUnavailable):
        await memory.mailbox.put(apart, ENTRY)
    cluster.pair(known_at)[1].resume()
    await client.close()
