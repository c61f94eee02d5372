"""Redis or Valkey: does it answer, does it keep data over a restart, has it memory left.

Managed servers often refuse CONFIG, and some leave fields out of INFO. If a server does not report
something, the verdict is `unknown`, which is not a failure.
"""

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import structlog

from bot.probe import Row, Rows, StoreProbe
from config.settings import Settings
from memory.store.client import RedisClient
from memory.store.errors import StoreError, StoreRefused, StoreUnfit
from memory.store.keys import Keys
from memory.store.layout import LAYOUT, OtherLayout, check_layout

log = structlog.get_logger(__name__)

_MIN_VERSION = {"Redis": (6, 2), "Valkey": (7, 2)}
_NEARLY_FULL = 0.8
_MAX_CLOCK_S = 30


@dataclass(frozen=True, slots=True)
class ServerState:
    """What a server reports about itself; None for what it does not report.

    `snapshots` is its `save` line, "" for none. `max_bytes` is 0 if there is no limit. `clients`
    includes ourselves. `is_redis` is false if its INFO has no fields. `clock_ahead_s` is how far
    its clock is ahead of ours.
    """

    product: str
    version: str | None
    ping_ms: float
    appends: bool | None
    snapshots: str | None
    policy: str | None
    used_bytes: int | None
    max_bytes: int | None
    clients: int | None
    max_clients: int | None
    replicas: int | None
    is_cluster: bool
    is_redis: bool = True
    clock_ahead_s: float = 0


async def refuse_unfit(client: RedisClient, address: str) -> None:
    """Refuse a server on which no bot can run, and warn of one that drops memories.

    Raise `StoreUnfit`, or another `StoreError` if it does not answer.
    """
    state = await _read_state(client)
    for row in (server(state), cluster(state, address)):
        if row.verdict == "fail":
            raise StoreUnfit(f"{row.seen}; {row.advice}")
    evicting = eviction(state)
    if evicting.verdict == "fail":
        log.warning("redis drops memories", detail=evicting.seen, advice=evicting.advice)


async def check_store(address: str | None, settings: Settings) -> Rows:
    """Yield rows about the server at `address`; None if the embedded one did not start."""
    if address is None:
        yield Row(
            "Redis",
            "warn",
            "the embedded Valkey did not start: a bot uses DATA_DIR, or it is not writable",
            "stop that bot to check its data, or set REDIS_URL",
        )
        return
    try:
        async with one_connection(address, settings) as client:
            state = await _read_state(client)
    except StoreError as error:
        yield _trouble(error, address, settings)
        return
    yield server(state)
    yield persistence(state)
    yield eviction(state)
    yield memory(state)
    yield connections(state, settings.redis_max_connections)
    yield cluster(state, address)
    if abs(state.clock_ahead_s) > _MAX_CLOCK_S:
        yield clock(state)
    if settings.intake_wait_replicas:
        yield replicas(state, settings.intake_wait_replicas)


def server(state: ServerState) -> Row:
    """Judge product and version."""
    minimum = _MIN_VERSION[state.product]
    needed = f"{state.product} {'.'.join(map(str, minimum))} or newer"
    if not state.is_redis:
        seen = "a server answers, but it is neither Redis nor Valkey"
        return Row("Redis", "fail", seen, f"{needed} is needed: choose another REDIS_URL")
    if state.version is None:
        return Row(
            "Redis", "unknown", f"answers, but does not report its version ({needed} is needed)"
        )
    seen = f"{state.product} {state.version}, {state.ping_ms:.1f} ms for a round trip"
    if _numbers(state.version) < minimum:
        return Row("Redis", "fail", seen, f"{needed} is needed: choose another REDIS_URL")
    return Row("Redis", "ok", seen)


def persistence(state: ServerState) -> Row:
    """Judge what a crash of the server would lose."""
    what, advice = "Redis persistence", "turn on appendonly, or choose a plan that keeps data"
    match state.appends, state.snapshots:
        case True, _:
            return Row(what, "ok", "append-only file: a crash loses about a second")
        case None, _:
            return Row(what, "unknown", "not reported", "ask your provider what a restart keeps")
        case _, None:
            return Row(
                what,
                "unknown",
                "no append-only file; snapshots are not reported",
                "ask your provider what a restart keeps",
            )
        case _, "":
            return Row(what, "warn", "none: a restart of the server loses everything", advice)
        case _, snapshots:
            seen = f"snapshots only (save {snapshots}): a crash loses what came after the last one"
            return Row(what, "warn", seen, advice)


def eviction(state: ServerState) -> Row:
    """Judge what a full server does: it must refuse writes and not drop memories."""
    if state.policy is None:
        advice = "make sure that it is noeviction"
        return Row("Redis eviction", "unknown", "maxmemory-policy is not reported", advice)
    if state.policy != "noeviction":
        seen = f"maxmemory-policy is {state.policy}: a full server drops memories and messages"
        advice = "set maxmemory-policy to noeviction, or choose another REDIS_URL"
        return Row("Redis eviction", "fail", seen, advice)
    return Row("Redis eviction", "ok", "noeviction")


def memory(state: ServerState) -> Row:
    """Judge how much memory is left."""
    what, used, limit = "Redis memory", state.used_bytes, state.max_bytes
    if used is None or limit is None:
        return Row(what, "unknown", "not reported", "look at your provider's page")
    if limit == 0:
        return Row(what, "ok", f"{_mb(used)} used, no limit set")
    seen = f"{_mb(used)} of {_mb(limit)} used, {used / limit:.0%}"
    advice = "choose a larger plan, or lower MEMORY_TTL_DAYS"
    if used >= limit:
        return Row(what, "fail", f"{seen}: it is full", advice)
    if used >= _NEARLY_FULL * limit:
        return Row(what, "warn", seen, advice)
    return Row(what, "ok", seen)


def connections(state: ServerState, ours: int) -> Row:
    """Judge whether one more process of ours fits: during a deploy the old and the new one run."""
    what, limit, others = "Redis connections", state.max_clients, (state.clients or 1) - 1
    if limit is None:
        seen = f"the limit is not reported; a process opens up to {ours}"
        return Row(what, "unknown", seen, "look at your plan: during a deploy two processes run")
    seen = f"{others} of {limit} in use, a process opens up to {ours}"
    if ours > limit:
        return Row(what, "fail", seen, f"set REDIS_MAX_CONNECTIONS to {max(2, limit // 2)} or less")
    if others + ours > limit:
        advice = "lower REDIS_MAX_CONNECTIONS: a new process starts before the old one ends"
        return Row(what, "warn", seen, advice)
    return Row(what, "ok", seen)


def cluster(state: ServerState, address: str) -> Row:
    """Judge whether the address fits the kind of server."""
    if state.is_cluster and "+cluster://" not in address:
        scheme = "rediss" if address.startswith("rediss") else "redis"
        advice = f"begin REDIS_URL with {scheme}+cluster://"
        return Row("Redis kind", "fail", "a Cluster, but the address is for one server", advice)
    seen = "a Cluster (the figures are those of one node)" if state.is_cluster else "one server"
    return Row("Redis kind", "ok", seen)


def clock(state: ServerState) -> Row:
    """Return the warning about two clocks that differ."""
    seconds = round(abs(state.clock_ahead_s))
    seen = (
        f"this machine is {seconds} s {'behind' if state.clock_ahead_s > 0 else 'ahead of'} Redis"
    )
    return Row("Clock", "warn", seen, "let NTP set the clocks: reminders come at the wrong time")


def replicas(state: ServerState, wanted: int) -> Row:
    """Judge whether there are as many replicas as intake waits for; else it accepts nothing."""
    what, linked = "Redis replicas", state.replicas
    if linked is None:
        advice = "make sure that it has as many as INTAKE_WAIT_REPLICAS"
        return Row(what, "unknown", f"not reported, {wanted} must have each message", advice)
    seen = f"{linked} connected, {wanted} must have each message"
    if linked < wanted:
        return Row(what, "fail", f"{seen}: no message is accepted", "lower INTAKE_WAIT_REPLICAS")
    return Row(what, "ok", seen)


@asynccontextmanager
async def one_connection(address: str, settings: Settings) -> AsyncIterator[RedisClient]:
    """Give a client of Redis while the block lasts; raise `StoreError`."""
    # Only one connection: on a small plan, running processes may use all others.
    client = await RedisClient.open(
        address, max_connections=1, tls_verify=settings.verifies_redis_tls
    )
    try:
        yield client
    finally:
        await client.close()


async def _read_state(client: RedisClient) -> ServerState:
    began = time.perf_counter()
    await client.ping()
    ping_ms = (time.perf_counter() - began) * 1000
    info: Mapping[str, str] = {}
    is_redis = True
    with suppress(StoreRefused):
        info = await client.info("default")
        is_redis = bool(info)
    config: Mapping[str, str] = {}
    ahead_s = await client.clock_ahead_s() if is_redis else 0
    if is_redis:
        with suppress(StoreRefused):
            config = await client.call("CONFIG GET", "save", "maxclients")
    appends = info.get("aof_enabled")
    is_valkey = "valkey_version" in info
    return ServerState(
        product="Valkey" if is_valkey else "Redis",
        version=info.get("valkey_version") or info.get("redis_version"),
        ping_ms=ping_ms,
        appends=None if appends is None else appends == "1",
        snapshots=config.get("save"),
        policy=info.get("maxmemory_policy"),
        used_bytes=_integer(info.get("used_memory")),
        max_bytes=_integer(info.get("maxmemory")),
        clients=_integer(info.get("connected_clients")),
        max_clients=_integer(info.get("maxclients") or config.get("maxclients")),
        replicas=_integer(info.get("connected_slaves")),
        is_cluster=info.get("cluster_enabled") == "1",
        is_redis=is_redis,
        clock_ahead_s=ahead_s,
    )


def _trouble(error: StoreError, address: str, settings: Settings) -> Row:
    if isinstance(error, StoreRefused):
        advice = "check user, password and scheme of REDIS_URL"
        return Row("Redis", "fail", "the server refused this login or address", advice)
    advice = "check host and port of REDIS_URL, and whether the server needs rediss://"
    if address.startswith("rediss") and settings.verifies_redis_tls:
        advice = (
            "check host and port of REDIS_URL; if its certificate is self-signed, "
            "set REDIS_TLS_VERIFY=never"
        )
    return Row("Redis", "fail", "no answer", advice)


def _integer(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def _mb(count: int) -> str:
    return f"{count / 2**20:.1f} MB"


async def _stored_data(_: Settings, client: RedisClient, keys: Keys) -> Rows:
    """Yield whether this version can read what is stored."""
    what = "Stored data"
    try:
        await check_layout(client, keys)
    except OtherLayout as other:
        yield Row(what, "fail", "another version has stored it", str(other).partition(": ")[2])
    else:
        yield Row(what, "ok", f"layout {LAYOUT}, as this version reads it")


STORED_DATA = StoreProbe("Stored data", _stored_data)
