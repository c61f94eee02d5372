"""With `INTAKE_WAIT_REPLICAS`, an update is accepted only when replicas have it."""

import time
from collections.abc import AsyncIterator, Iterator
from itertools import count

import pytest
from redis.asyncio import RedisCluster

from memory.memory import Memory, MemoryOptions
from memory.queue import mailbox
from memory.queue.mailbox import Entry, Outcome
from memory.queue.turn_store import TurnTimes
from memory.store.client import RedisClient
from memory.store.commands import Command
from memory.store.errors import StoreUnavailable
from memory.store.keys import Keys, Scope
from tests.lab.cluster.nodes import ThreeNodeCluster, primary_of
from tests.memory.conftest import memory_of
from tests.memory.turns import HERE, clear
from tests.valkey import HOST, ValkeyServer

pytestmark = [pytest.mark.trial, pytest.mark.xdist_group("cluster")]

OPTIONS = MemoryOptions(86_400, 50, 1_000_000, TurnTimes(), wait_replicas=1)
ENTRY = Entry(1, 7, is_alone=False, body=b"text")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ValkeyServer, ValkeyServer]]:
    primary = ValkeyServer(tmp_path_factory.mktemp("primary"), "--repl-diskless-sync-delay", "0")
    primary.start()
    follows = ("--replicaof", f"{HOST} {primary.port}")
    replica = ValkeyServer(tmp_path_factory.mktemp("replica"), *follows)
    replica.start()
    while b"master_link_status:up" not in replica.ask("INFO replication"):
        time.sleep(0.01)
    yield primary, replica
    replica.stop()
    primary.stop()


@pytest.fixture
def primary(pair: tuple[ValkeyServer, ValkeyServer]) -> ValkeyServer:
    """Return an empty server that has a replica."""
    pair[0].ask("FLUSHALL")
    return pair[0]


@pytest.fixture
async def memory(primary: ValkeyServer) -> AsyncIterator[Memory]:
    client = await RedisClient.open(primary.url)
    yield memory_of(client, options=OPTIONS)
    await client.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the wait for replicas that will not answer."""
    monkeypatch.setattr(mailbox, "_REPLICATION_MS", 200)


async def test_an_update_is_refused_until_a_replica_has_it(
    memory: Memory, pair: tuple[ValkeyServer, ValkeyServer]
) -> None:
    pair[1].pause()
    try:
        for _ in range(2):  # the second delivery is a duplicate, which no replica has either
            with pytest.raises(StoreUnavailable):
                await memory.mailbox.put(HERE, ENTRY)
        assert not await memory.client.call("EXISTS", memory.keys.ready_queue)
    finally:
        pair[1].resume()
    assert await memory.mailbox.put(HERE, ENTRY) is Outcome.DUPLICATE
    assert await memory.client.call("XLEN", memory.keys.ready_queue) == 1


@pytest.mark.usefixtures("impatient")
async def test_without_replicas_no_update_and_no_move_is_accepted(store: RedisClient) -> None:
    intake = memory_of(store, options=OPTIONS).mailbox
    for refused in (intake.put(HERE, ENTRY), intake.move(Scope("c:-5:0"), Scope("c:-6:0"))):
        with pytest.raises(StoreUnavailable):
            await refused


class LosingClient(RedisClient):
    """A client that deletes keys with `lost` in their name before it waits, as a failover would."""

    lost = ""

    async def is_replicated(self, write: Command, replicas: int, within_ms: int) -> bool:
        """Delete the key if it must be lost, then wait for replicas."""
        if self.lost in str(write[1]):
            await self.call("DEL", str(write[1]))
        return await super().is_replicated(write, replicas, within_ms)


@pytest.mark.parametrize(("lost", "again"), [(":seen", "taken"), (":conversations:", "duplicate")])
async def test_an_update_that_a_failover_lost_is_refused(
    primary: ValkeyServer, memory: Memory, lost: str, again: str
) -> None:
    client = await LosingClient.open(primary.url)
    client.lost = lost
    with pytest.raises(StoreUnavailable):
        await memory_of(client, options=OPTIONS).mailbox.put(HERE, ENTRY)
    await client.close()
    assert await memory.mailbox.put(HERE, ENTRY) == again


async def test_intake_does_not_wait_for_replicas_of_a_dropped_update(memory: Memory) -> None:
    await clear(memory, 10, HERE)
    assert await memory.mailbox.put(HERE, ENTRY) is Outcome.DROPPED


@pytest.mark.usefixtures("impatient")
async def test_on_a_cluster_intake_waits_for_the_index_too(
    whole_cluster: ThreeNodeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This also holds for a duplicate within the same second, which does not change the index."""
    monkeypatch.setattr(mailbox, "time", lambda: 1_000.0)
    chats = map(Scope.of_chat, count(1))
    keys = Keys(42)
    primaries = ((chat, primary_of(keys.index_of(chat))) for chat in chats)
    apart, index_primary = next(
        (chat, number) for chat, number in primaries if number != primary_of(keys.scope(chat).seen)
    )
    whole_cluster.pair(index_primary)[1].pause()
    try:
        for _ in range(2):  # each time by a new process
            client = await RedisClient.open(whole_cluster.url)
            with pytest.raises(StoreUnavailable):
                await memory_of(client, options=OPTIONS).mailbox.put(apart, ENTRY)
            await client.close()
    finally:
        whole_cluster.rejoin(index_primary)


async def test_on_a_cluster_a_broken_connection_does_not_count_as_a_replica(
    whole_cluster: ThreeNodeCluster,
) -> None:
    client = await RedisClient.open(whole_cluster.url)
    sdk = client._redis
    assert isinstance(sdk, RedisCluster)
    default = sdk.get_default_node()
    key = next(key for key in map(str, count()) if sdk.get_node_from_key(key) != default)
    await client.call("ZADD", key, 1, "member")
    whole_cluster.cut_off(primary_of(key))
    try:
        whole_cluster.pair(primary_of(key))[0].ask("CLIENT KILL TYPE normal SKIPME yes")
        with pytest.raises(StoreUnavailable):
            await client.is_replicated(("ZADD", key, "XX", "INCR", -1, "member"), 1, 20)
        assert not await client.is_replicated(("ZADD", key, "XX", "INCR", -1, "member"), 1, 20)
    finally:
        whole_cluster.rejoin(primary_of(key))
    assert await client.is_replicated(("ZADD", key, "XX", "INCR", -1, "member"), 1, 2_000)
    await client.close()
