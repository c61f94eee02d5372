"""The client when something fails: what it raises, what it does not show, how it goes on."""

import asyncio
import inspect
import socket
import ssl
import traceback
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography.x509 import IPAddress
from redis import exceptions as untrusted
from redis.asyncio import RedisCluster

from memory.store import client as redis_client
from memory.store import errors as store_errors
from memory.store.client import RedisClient, checked_slots
from memory.store.commands import Script
from memory.store.errors import LoginRefused, StoreError, StoreFull, StoreRefused, StoreUnavailable
from tests.certificates import certificate_of
from tests.valkey import HOST, OneNodeCluster, ValkeyServer, free_port, opened

_UNAVAILABLE = (
    "AskError BusyLoadingError ClusterDownError ClusterError ConnectionError "
    "ExternalAuthProviderError InvalidResponse MasterDownError MaxConnectionsError "
    "MovedError ReadOnlyError SlotNotCoveredError TimeoutError TryAgainError"
)
_REFUSED = (
    "AuthenticationWrongNumberOfArgsError "
    "ClusterCrossSlotError CrossSlotTransactionError DataError ExecAbortError "
    "InvalidPipelineStack LockError LockNotOwnedError ModuleError NoPermissionError "
    "NoScriptError NoSuchFieldsetError PubSubError RedisClusterException RedisError "
    "ResponseError WatchError"
)
MEANINGS = {
    StoreFull: {"OutOfMemoryError"},
    LoginRefused: {"AuthenticationError", "AuthorizationError"},
    StoreUnavailable: {*_UNAVAILABLE.split()},
    StoreRefused: {*_REFUSED.split()},
}
IN_REDIS_6_SCRIPT = "Error running script (call to f_ab): @user_script:1: @user_script: 1:"
# Programming errors of the SDK's own: after a fork, and in a plugin that we do not use.
NOT_OURS = {"ChildDeadlockedError", "IncorrectPolicyType"}


def test_every_error_of_the_sdk_is_translated() -> None:
    classes = inspect.getmembers(
        untrusted, lambda found: inspect.isclass(found) and issubclass(found, Exception)
    )
    said: dict[type[StoreError], set[str]] = {kind: set() for kind in MEANINGS}
    for name, kind in classes:
        if name not in NOT_OURS:
            assert issubclass(kind, store_errors.SDK_ERRORS)
            said[type(store_errors.translate("GET", kind.__new__(kind, "text")))].add(name)
    assert said == MEANINGS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MISCONF Errors writing to the AOF file: No space left on device", StoreFull),
        ("NOREPLICAS Not enough good replicas to write.", StoreUnavailable),
        ("UNBLOCKED force unblock from blocking operation", StoreUnavailable),
        ("BUSY Redis is busy running a script.", StoreUnavailable),
        ("WRONGTYPE Operation against a key holding the wrong kind of value", StoreRefused),
        (f"{IN_REDIS_6_SCRIPT} -OOM command not allowed when used memory > 'max'.", StoreFull),
        (f"{IN_REDIS_6_SCRIPT} -READONLY You can't write against a replica.", StoreUnavailable),
    ],
)
def test_errors_without_an_own_class_are_translated(text: str, expected: type[StoreError]) -> None:
    assert type(store_errors.translate("EVALSHA", untrusted.ResponseError(text))) is expected


@pytest.mark.parametrize(
    "error",
    [
        untrusted.InvalidResponse("Protocol Error: b'hush'"),
        untrusted.RedisClusterException("Missing key. Command: ('GET', 'hush')"),
        untrusted.ResponseError("unknown command 'X', with args beginning with: 'hush'"),
    ],
)
def test_neither_an_error_nor_its_cause_shows_what_was_sent(error: Exception) -> None:
    try:
        with store_errors.translated_errors("GET", 1):
            raise error
    except StoreError as exc:
        shown = "".join(traceback.format_exception(exc))
    assert "hush" not in shown


async def test_a_refused_write_that_was_to_be_replicated_does_not_show_what_was_sent(
    store: RedisClient, cluster_store: RedisClient
) -> None:
    key = "hush"
    for client in (store, cluster_store):
        await client.call("SET", key, "v")
        with pytest.raises(StoreRefused, match="WRONGTYPE") as refusal:
            await client.is_replicated(("ZADD", key, "XX", "INCR", -1, "member"), 0, 1)
        cause = refusal.value.__cause__
        assert key not in f"{refusal.value!r} {cause!r}"


async def test_a_slot_without_a_node_is_unavailable(cluster_store: RedisClient) -> None:
    sdk = cluster_store._redis
    assert isinstance(sdk, RedisCluster)
    sdk.nodes_manager.slots_cache.clear()
    with pytest.raises(StoreUnavailable):
        await cluster_store.is_replicated(("ZADD", "z", "XX", "INCR", -1, "member"), 0, 1)


@pytest.mark.parametrize(
    ("made", "why"),
    [("CONFIG SET maxmemory 1", StoreFull), (f"REPLICAOF {HOST} 1", StoreUnavailable)],
    ids=["full", "a replica"],
)
async def test_a_server_that_takes_no_writes_says_why(
    own_server: ValkeyServer, made: str, why: type[StoreError]
) -> None:
    async with opened(own_server.url) as client:
        await client.call("SET", "k", "v")
        own_server.ask(made)
        with pytest.raises(why):
            await client.call("SET", "k", "w")
        with pytest.raises(why):
            await Script(client, "return redis.call('SET', KEYS[1], 'w')")(["k"])
        assert await client.call("GET", "k") == b"v"


async def test_after_a_failover_the_next_calls_go_to_the_server_that_the_address_names_now(
    own_server: ValkeyServer, valkey_server: ValkeyServer
) -> None:
    """The old server became a replica, keeps its connections, and refuses each write for ever."""
    valkey_server.ask("FLUSHALL")
    async with (
        in_front_of(own_server.port) as front,
        opened(f"redis://{HOST}:{front.port}") as client,
    ):
        await client.call("SET", "k", "old")
        own_server.ask(f"REPLICAOF {HOST} 1")
        front.target = valkey_server.port
        with pytest.raises(StoreUnavailable, match="read only"):
            await Script(client, "return redis.call('SET', KEYS[1], 'new')")(["k"])
        assert await client.call("SET", "k", "new") is True


async def test_a_script_error_is_refused(store: RedisClient, cluster_store: RedisClient) -> None:
    for client in (store, cluster_store):
        with pytest.raises(StoreRefused):
            await Script(client, "return redis.call('NOSUCH', KEYS[1])")(["k"])


async def test_a_wrong_password_is_refused_at_any_time_and_not_shown(
    own_server: ValkeyServer,
) -> None:
    async with opened(own_server.url) as client:
        own_server.ask("CONFIG SET requirepass right")
        await client.call("RESET")  # logs the connection out
        with pytest.raises(LoginRefused):
            await client.call("GET", "k")
    for login in ("", ":hush@"):
        with pytest.raises(LoginRefused) as refusal:
            await RedisClient.open(f"redis://{login}{HOST}:{own_server.port}")
        assert "hush" not in "".join(traceback.format_exception(refusal.value))
    async with opened(f"redis://:right@{HOST}:{own_server.port}/1"):
        pass


@pytest.mark.parametrize(
    "url", ["http://hush", "redis://:hush@host:port", "redis+cluster://host/3", "unix+cluster:///x"]
)
async def test_an_unreadable_address_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(StoreRefused) as refusal:
        await RedisClient.open(url)
    assert "hush" not in str(refusal.value)


async def test_options_in_an_address_cannot_change_the_shape_of_replies(valkey: str) -> None:
    async with opened(f"{valkey}?protocol=2&decode_responses=yes&family=6") as client:
        await client.call("SET", "k", "v")
        assert await client.call("GET", "k") == b"v"


@asynccontextmanager
async def scripted(
    replies: Mapping[bytes, bytes], greeted: int = 9
) -> AsyncIterator[tuple[int, list[asyncio.StreamWriter]]]:
    """Give the port of a server with these replies, and its connections; it greets so many."""
    greeting = {b"HELLO": b"%1\r\n$5\r\nproto\r\n:3\r\n", b"PING": b"+PONG\r\n"}
    connected: list[asyncio.StreamWriter] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected.append(writer)
        while len(connected) <= greeted and (asked := await reader.read(65536)):
            for name, reply in {**greeting, **replies}.items():
                writer.write(reply if b"\n%b\r" % name in asked else b"")

    async with await asyncio.start_server(answer, HOST, 0) as server:
        yield server.sockets[0].getsockname()[1], connected
        for each in connected:
            each.transport.abort()


@pytest.mark.parametrize("reply", [b"-MOVED\r\n", b"-ASK a b:c\r\n", b"%1\r\n*0\r\n+b\r\n"])
@pytest.mark.parametrize("cluster", ["", "+cluster"])
async def test_a_reply_that_cannot_be_read_is_unavailable(reply: bytes, cluster: str) -> None:
    """The SDK raises `ValueError` or `TypeError`, for which intake would drop an update."""
    commands = b"*1\r\n*6\r\n$3\r\nget\r\n:2\r\n*0\r\n:1\r\n:1\r\n:1\r\n"
    replies = {b"GET": reply, b"COMMAND": commands}
    async with scripted(replies) as (port, _):
        node = b"*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n" % port
        replies[b"SLOTS"] = b"*1\r\n*3\r\n:0\r\n:16383\r\n" + node
        async with opened(f"redis{cluster}://{HOST}:{port}") as client:
            with pytest.raises(StoreUnavailable):
                await client.call("GET", "k")


NODE = [b"10.0.0.1", 6379, b"id", []]


def test_the_slots_of_a_cluster_are_taken_as_they_are() -> None:
    slots = [[0, 8191, NODE, [None, 6379, b"id"]], [8192, 16383, NODE]]
    assert checked_slots(slots) is slots


@pytest.mark.parametrize(
    ("slots", "error"),
    [
        ([[0, 2_000_000_000, NODE]], untrusted.InvalidResponse),
        ([[0, 16383, NODE]] * 2, untrusted.InvalidResponse),
        ([[0, 16383, *([b"host", port] for port in range(1001))]], untrusted.InvalidResponse),
        ([[0]], untrusted.InvalidResponse),
        (b"OK", untrusted.InvalidResponse),
        (None, untrusted.InvalidResponse),
        ([], untrusted.SlotNotCoveredError),
        ([[0, 100, NODE]], untrusted.SlotNotCoveredError),
    ],
)
def test_slots_that_no_cluster_has_are_refused(slots: object, error: type[Exception]) -> None:
    """The SDK would walk through two billion slots in one step of the loop, or connect to all."""
    with pytest.raises(error):
        checked_slots(slots)


@pytest.mark.parametrize("scheme", ["redis", "rediss", "redis+cluster", "rediss+cluster"])
async def test_no_server_is_unavailable(scheme: str) -> None:
    with pytest.raises(StoreUnavailable):
        await RedisClient.open(f"{scheme}://{HOST}:{free_port()}")


async def test_no_answer_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_client, "CALL_TIMEOUT_S", 0.05)
    with socket.create_server((HOST, 0)) as silent:
        url = f"redis://{HOST}:{silent.getsockname()[1]}"
        with pytest.raises(StoreUnavailable, match=r"PING: no answer within 0\.05 s"):
            await RedisClient.open(url)


async def test_a_silent_connection_is_given_up_before_the_call_times_out(
    own_server: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(own_server.url) as client:
        monkeypatch.setattr(redis_client, "CALL_TIMEOUT_S", 10_000)
        monkeypatch.setattr(redis_client, "SOCKET_TIMEOUT_S", 0.1)
        with pytest.raises(StoreUnavailable):
            await client.call("BLPOP", "no such list", 0)


async def test_a_channel_ends_if_its_new_connection_is_never_greeted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(redis_client, "SOCKET_TIMEOUT_S", 0.5)
    monkeypatch.setattr(redis_client, "_SILENCE_S", 0.5)
    subscribed = b">3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n"
    async with (
        scripted({b"SUBSCRIBE": subscribed}, greeted=2) as (port, connected),
        opened(f"redis://{HOST}:{port}") as client,
    ):

        async def listen() -> None:
            async for _ in client.messages("x"):
                for each in connected[:2]:
                    each.transport.abort()

        with pytest.raises(StoreUnavailable):
            await listen()
        assert len(connected) > 2


async def test_the_client_reconnects_after_the_server_closed_the_connection(
    store: RedisClient,
    valkey_server: ValkeyServer,
    cluster_store: RedisClient,
    cluster_server: ValkeyServer,
) -> None:
    for client, server in ((store, valkey_server), (cluster_store, cluster_server)):
        await client.call("SET", "k", "v")
        server.ask("CLIENT KILL TYPE normal SKIPME yes")
        assert await client.call("GET", "k") == b"v"
        server.ask("CLIENT KILL TYPE normal SKIPME yes")
        assert await client.pipeline([("GET", "k")]) == [b"v"]


async def test_a_cluster_connection_that_is_closed_during_a_call_is_unavailable_at_worst(
    cluster_store: RedisClient,
) -> None:
    """As the SDK does when a node is gone and it looks for the others."""
    sdk = cluster_store._redis
    assert isinstance(sdk, RedisCluster)

    async def close_again_and_again() -> None:
        while True:
            await asyncio.sleep(0)
            await asyncio.gather(*(node.disconnect() for node in sdk.get_nodes()))

    closing = asyncio.create_task(close_again_and_again())
    calls = (cluster_store.call("SET", f"k{number}", "v") for number in range(60))
    replies = await asyncio.gather(*calls, return_exceptions=True)
    closing.cancel()
    assert {type(reply) for reply in replies} <= {bool, StoreUnavailable}


async def test_the_client_works_again_after_the_server_restarts(own_server: ValkeyServer) -> None:
    async with opened(own_server.url) as client:
        push = Script(client, "return redis.call('RPUSH', KEYS[1], ARGV[1])")
        assert await push(["list"], ["a"]) == 1
        own_server.kill()
        with pytest.raises(StoreUnavailable):
            await client.call("GET", "k")
        own_server.start()
        assert await client.pipeline([("GET", "k"), push.command(["list"], ["b"])]) == [None, 1]


@pytest.mark.parametrize("kind", [ValkeyServer, OneNodeCluster])
async def test_a_client_of_a_dead_server_closes_quietly(
    tmp_path: Path, kind: type[ValkeyServer]
) -> None:
    server = kind(tmp_path)
    server.start()
    client = await RedisClient.open(server.url)
    server.kill()
    with pytest.raises(StoreUnavailable):
        await client.call("GET", "k")
    await client.close()


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    return certificate_of(IPAddress(ip_address(HOST)), tmp_path)


@dataclass
class Front:
    """A port, and the one of the server to which it leads each new connection."""

    target: int
    port: int = 0


@asynccontextmanager
async def in_front_of(port: int, certificate: Path | None = None) -> AsyncIterator[Front]:
    """Give a port with the server at `port` behind it; with a certificate it speaks TLS."""
    front, context = Front(port), None
    if certificate:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)

    async def pour(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while chunk := await source.read(65536):
            target.write(chunk)
        target.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection(HOST, front.target)
        await asyncio.gather(pour(reader, server_writer), pour(server_reader, writer))

    async with await asyncio.start_server(serve, HOST, 0, ssl=context) as proxy:
        front.port = proxy.sockets[0].getsockname()[1]
        yield front


async def test_a_self_signed_certificate_is_refused_unless_accepted_or_its_authority_named(
    own_server: ValkeyServer, certificate: Path
) -> None:
    own_server.ask("CONFIG SET requirepass hush")
    async with in_front_of(own_server.port, certificate) as front:
        url = f"rediss://:hush@{HOST}:{front.port}"
        for refused in (url, f"{url}?ssl_cert_reqs=required"):
            with pytest.raises(StoreUnavailable, match="certificate is not trusted") as refusal:
                await RedisClient.open(refused, tls_verify=refused == url)
            assert "hush" not in str(refusal.value)
        with pytest.raises(StoreRefused, match="ssl_cert_reqs in the address"):
            await RedisClient.open(f"{url}?ssl_cert_reqs=never")
        for accepted in (
            RedisClient.open(url, tls_verify=False),
            RedisClient.open(f"{url}?ssl_cert_reqs=none"),
            RedisClient.open(f"{url}?ssl_cert_reqs=CERT_NONE"),
            RedisClient.open(f"{url}?ssl_ca_certs={certificate}"),
        ):
            client = await accepted
            assert await client.call("SET", "k", "v") is True
            await client.close()
