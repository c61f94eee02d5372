"""The client on a real server: the replies, their order, and the connections."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from operator import methodcaller
from typing import Any, Self, TypeAlias

import pytest

from memory.store import client as redis_client
from memory.store.client import MAX_BLOCK_MS, SOCKET_TIMEOUT_S, RedisClient, published
from memory.store.commands import Command, Script
from memory.store.errors import StoreRefused, StoreUnavailable
from memory.store.store import stream_entries
from tests.valkey import ValkeyServer, opened

APPEND = "redis.call('RPUSH', KEYS[1], ARGV[1]) return redis.call('LRANGE', KEYS[1], 0, -1)"


Waiting: TypeAlias = asyncio.Task[list[object]]


@pytest.fixture(params=["store", "cluster_store"])
def either(request: pytest.FixtureRequest) -> RedisClient:
    """Give a client of one server, then one of a Cluster."""
    client: RedisClient = request.getfixturevalue(request.param)
    return client


async def test_values_are_bytes_in_their_shapes_and_info_is_text(either: RedisClient) -> None:
    assert await either.call("SET", "k", "grüß") is True
    assert await either.call("GET", "k") == "grüß".encode()
    assert await either.call("GET", "none") is None
    await either.call("HSET", "h", "name", b"\x00\xff", "n", 1)
    await either.call("ZADD", "z", 1.5, "a", 2, "b")
    assert await either.call("HGETALL", "h") == {b"name": b"\x00\xff", b"n": b"1"}
    assert await either.call("ZRANGE", "z", 0, -1, "WITHSCORES") == [[b"a", 1.5], [b"b", 2.0]]
    memory = await either.info("memory")
    assert memory["maxmemory_policy"] == "noeviction"
    assert memory["used_memory"].isdecimal()


async def test_pages_of_a_stream_grow(store: RedisClient) -> None:
    await store.pipeline([("XADD", "stream", f"{id_}-0", "c", id_) for id_ in range(1, 2_001)])
    before = store.round_trips
    entries = stream_entries(store, "stream", newest_first=True)
    assert [int(entry[:-2]) async for entry, _ in entries] == [*range(2_000, 0, -1)]
    assert store.round_trips - before == 4


async def test_a_pipeline_keeps_its_order(either: RedisClient) -> None:
    append = Script(either, APPEND)
    replies = await either.pipeline(
        [
            ("SET", "{c}k", 1),
            append.command(["{c}list"], ["a"]),
            ("GET", "{c}k"),
            append.command(["{c}list"], ["b"]),
        ]
    )
    assert replies == [True, [b"a"], b"1", [b"a", b"b"]]


async def test_commands_after_an_error_in_a_pipeline_have_run(store: RedisClient) -> None:
    with pytest.raises(StoreRefused, match="WRONGTYPE"):
        await store.pipeline([("SET", "k", "v"), ("LPUSH", "k", "x"), ("SET", "other", "v")])
    assert await store.call("GET", "other") == b"v"


async def test_a_write_that_did_not_take_place_is_not_replicated(either: RedisClient) -> None:
    await either.call("ZADD", "z", 5, "there")
    waited = [
        await either.is_replicated(("ZADD", "z", "XX", "INCR", -1, member), replicas, 20)
        for member, replicas in (("there", 0), ("absent", 0), ("there", 1))
    ]
    assert waited == [True, False, False]
    assert await either.call("ZSCORE", "z", "there") == 3


async def test_known_scripts_go_by_digest(store: RedisClient, valkey_server: ValkeyServer) -> None:
    valkey_server.ask("CONFIG RESETSTAT")
    append = Script(store, APPEND)
    for letter in "abc":
        await append(["list"], [letter])
    calls = await store.info("commandstats")
    assert calls["cmdstat_eval"].startswith("calls=1,")
    assert calls["cmdstat_evalsha"].startswith("calls=2,")


async def test_a_forgotten_script_is_sent_again(either: RedisClient) -> None:
    append = Script(either, APPEND)
    await append(["list"], ["a"])
    await either.call("SCRIPT FLUSH")
    assert await append(["list"], ["b"]) == [b"a", b"b"]


async def test_commands_keep_their_order_when_a_script_was_forgotten(either: RedisClient) -> None:
    take = Script(either, "return redis.call('SET', KEYS[1], 'taken')")
    await take(["{c}lease"])
    await either.pipeline([("SCRIPT FLUSH",), ("DEL", "{c}lease")])
    look = ("GET", "{c}lease")
    assert await either.pipeline([look, take.command(["{c}lease"]), look]) == [
        None,
        b"OK",
        b"taken",
    ]


async def test_many_callers_share_few_connections(own_server: ValkeyServer) -> None:
    async with opened(own_server.url, max_connections=2) as client:
        replies = await asyncio.gather(*(client.call("INCR", "n") for _ in range(50)))
        connections = own_server.ask("CLIENT LIST").count(b" addr=")
    assert sorted(replies) == list(range(1, 51))
    assert connections == 2 + 1  # one asked for the list


async def test_a_waiting_reader_holds_one_connection(valkey: str) -> None:
    async with opened(valkey, max_connections=2) as client:
        reader = asyncio.create_task(client.call("BLPOP", "list", MAX_BLOCK_MS / 1000))
        assert await client.pipeline([("SET", "k", "v"), ("GET", "k")]) == [True, b"v"]
        await client.call("RPUSH", "list", "item")
        assert await reader == (b"list", b"item")


@pytest.fixture
async def busy(valkey: str, valkey_server: ValkeyServer) -> AsyncIterator[RedisClient]:
    """Give a client whose only connection is in a blocking read."""
    client = await RedisClient.open(valkey, max_connections=1)
    reader = asyncio.create_task(client.call("BLPOP", "list", MAX_BLOCK_MS / 1000))
    while b"cmd=blpop" not in valkey_server.ask("CLIENT LIST"):  # noqa: ASYNC110 - no other sign
        await asyncio.sleep(0)
    yield client
    await reader
    await client.close()


async def _waiting(*calls: Coroutine[object, object, list[object]]) -> list[Waiting]:
    """Let calls run as far as they can without a reply."""
    tasks = [asyncio.create_task(call) for call in calls]
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks


async def test_a_walk_through_the_keys_waits_for_a_connection(
    busy: RedisClient, store: RedisClient
) -> None:
    async def walk() -> list[object]:
        return [key async for key in busy.keys_like("*")]

    [walking] = await _waiting(walk())
    assert not walking.done()
    await store.call("RPUSH", "list", "item")
    assert await walking == []


async def test_waiting_pipelines_share_a_round_trip(busy: RedisClient, store: RedisClient) -> None:
    before = busy.round_trips
    waiting = await _waiting(
        busy.pipeline([("SET", "k", "v"), ("GET", "k")]),
        busy.pipeline([("INCR", "n")]),
        busy.pipeline([("INCR", "n"), ("GET", "k")]),
    )
    await store.call("RPUSH", "list", "item")
    assert await asyncio.gather(*waiting) == [[True, b"v"], [1], [2, b"v"]]
    assert busy.round_trips == before + 1


@pytest.mark.parametrize(
    ("command", "error"),
    [(("INCR", "text"), StoreRefused), (("SET", "k", "half: \ud83d"), UnicodeEncodeError)],
    ids=["refused", "not encoded"],
)
async def test_an_error_in_a_shared_round_trip_is_raised_only_for_its_caller(
    busy: RedisClient, store: RedisClient, command: Command, error: type[Exception]
) -> None:
    await store.call("SET", "text", "no number")
    calls: list[Command] = [("GET", "text"), command, ("STRLEN", "text")]
    first, refused, last = await _waiting(*(busy.pipeline([each]) for each in calls))
    await store.call("RPUSH", "list", "item")
    assert await first == [b"no number"]
    with pytest.raises(error):
        await refused
    assert await last == [9]


@pytest.mark.parametrize(
    ("number", "replies"), [(0, [[1], [2]]), (1, [[1], [3]])], ids=["the sender", "another"]
)
async def test_when_a_caller_is_cancelled_the_others_go_on(
    busy: RedisClient, store: RedisClient, number: int, replies: list[list[int]]
) -> None:
    others = await _waiting(*(busy.pipeline([("INCR", "n")]) for _ in range(3)))
    cancelled = others.pop(number)
    cancelled.cancel()
    await store.call("RPUSH", "list", "item")
    assert await asyncio.gather(*others) == replies
    assert cancelled.cancelled()


async def test_a_caller_that_goes_on_after_a_cancelled_one_keeps_its_own_time_limit(
    busy: RedisClient, store: RedisClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_client, "CALL_TIMEOUT_S", 0.2)
    first, second = await _waiting(*(busy.pipeline([("GET", "k")]) for _ in range(2)))
    other = asyncio.create_task(busy.call("GET", "k"))
    asyncio.get_running_loop().call_later(0.1, first.cancel)
    await asyncio.wait([other])
    await asyncio.sleep(0)
    assert second.done()
    assert [type(task.exception()) for task in (second, other)] == [StoreUnavailable] * 2
    assert first.cancelled()
    await store.call("RPUSH", "list", "item")


async def test_a_caller_that_times_out_leaves_the_others_their_time(
    busy: RedisClient, store: RedisClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_client, "CALL_TIMEOUT_S", 0.1)
    [first] = await _waiting(busy.pipeline([("INCR", "n")]))
    monkeypatch.setattr(redis_client, "CALL_TIMEOUT_S", 12.0)
    others = await _waiting(*(busy.pipeline([("INCR", "n")]) for _ in range(2)))
    with pytest.raises(StoreUnavailable, match=r"pipeline: no answer"):
        await first
    await store.call("RPUSH", "list", "item")
    assert await asyncio.gather(*others) == [[1], [2]]


async def test_a_lost_connection_fails_all_who_share_a_round_trip(own_server: ValkeyServer) -> None:
    async with opened(own_server.url, max_connections=1) as client:
        waiting = await _waiting(*(client.pipeline([("GET", "k")]) for _ in range(3)))
        own_server.kill()
        ends = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(end) for end in ends[1:]] == [StoreUnavailable, StoreUnavailable]


def test_the_socket_timeout_is_longer_than_the_longest_block() -> None:
    assert MAX_BLOCK_MS / 1000 < SOCKET_TIMEOUT_S / 2


async def test_a_cancelled_call_answers_no_other(valkey_server: ValkeyServer, valkey: str) -> None:
    async with opened(valkey, max_connections=1) as client:
        reader = asyncio.create_task(client.call("BLPOP", "list", 1))
        while b"cmd=blpop" not in valkey_server.ask("CLIENT LIST"):  # noqa: ASYNC110 - no other sign
            await asyncio.sleep(0)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        await client.call("SET", "k", "v")
        assert await client.call("GET", "k") == b"v"


@pytest.mark.parametrize("read", [int, methodcaller("items")])
async def test_a_reply_that_the_sdk_cannot_read_leaves_none_for_the_next_call(
    valkey: str, read: Callable[[bytes], object]
) -> None:
    async with opened(valkey, max_connections=1) as client:
        sdk: Any = client._redis
        sdk.set_response_callback("ECHO", read)
        await client.call("SET", "k", "v")
        with pytest.raises(StoreUnavailable):
            await client.pipeline([("ECHO", "no number"), ("BLPOP", "none", 0.1)])
        assert await client.call("GET", "k") == b"v"


async def test_a_refused_call_does_not_lose_its_cancellation(valkey: str) -> None:
    """Before Python 3.12 the SDK may lose it; a worker that was told to stop then read on."""
    lost = []
    for steps in range(40):
        async with opened(valkey, max_connections=2) as client:
            pings = [asyncio.create_task(client.ping()) for _ in range(2)]
            call = asyncio.create_task(client.call("XPENDING", "none", "workers"))
            for _ in range(steps):
                await asyncio.sleep(0)
            was_cancelled = call.cancel()
            outcomes = await asyncio.gather(call, *pings, return_exceptions=True)
            if was_cancelled and not isinstance(outcomes[0], asyncio.CancelledError):
                lost.append(steps)
    assert lost == []


class LosesACancellation:
    """A subscription whose first call swallows a cancellation, as may happen on Python 3.11."""

    def __init__(self) -> None:
        self.calls = 0

    def pubsub(self) -> Self:
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def subscribe(self, _: str) -> None:
        return None

    async def get_message(self, timeout: float) -> dict[str, object]:  # noqa: ASYNC109 - the SDK's
        del timeout
        self.calls += 1
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return {"type": "subscribe"}


async def test_a_listener_ends_even_if_the_sdk_loses_its_cancellation() -> None:
    sdk: Any = LosesACancellation()

    async def listen() -> bytes:
        return await anext(published(sdk, "channel"))

    listening = asyncio.create_task(listen())
    await asyncio.sleep(0)
    listening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listening
    assert sdk.calls == 1
