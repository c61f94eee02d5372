"""Redis or Valkey: does it answer, will it keep what it is given, is there room.

Managed servers often refuse CONFIG, and some leave fields out of INFO: what a server does not tell
is unknown, which is no failure.
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from bot.check.rows import Row, Rows
from config.settings import Settings
from memory.store.client import RedisClient
from memory.store.errors import StoreError, StoreRefused

_LEAST = {"Redis": (6, 2), "Valkey": (7, 2)}
_NEARLY_FULL = 0.8


@dataclass(frozen=True, slots=True)
class ServerState:
    """What a server tells of itself; None where it does not.

    `snapshots` is its `save` line, "" for none; `byte_limit` 0 is no limit. `clients` counts us.
    """

    product: str
    version: str | None
    ping_ms: float
    appends: bool | None
    snapshots: str | None
    policy: str | None
    used_bytes: int | None
    byte_limit: int | None
    clients: int | None
    client_limit: int | None
    replicas: int | None
    is_cluster: bool


async def check_store(address: str | None, settings: Settings) -> Rows:
    """Yield rows on the server at `address`, or on why there is none (None: the embedded one)."""
    if address is None:
        yield Row(
            "Redis",
            "warn",
            "the embedded Valkey did not start: a bot is using DATA_DIR, or it is not writable",
            "stop that bot to have its data checked, or set REDIS_URL",
        )
        return
    try:
        state = await _ask(address, settings)
    except StoreError as error:
        yield _trouble(error, address, settings)
        return
    yield server(state)
    yield persistence(state)
    yield eviction(state)
    yield memory(state)
    yield connections(state, settings.redis_max_connections)
    yield cluster(state, address)
    if settings.intake_wait_replicas:
        yield replicas(state, settings.intake_wait_replicas)


def server(state: ServerState) -> Row:
    """Judge product and version."""
    least = _LEAST[state.product]
    needed = f"{state.product} {'.'.join(map(str, least))} or newer"
    if state.version is None:
        return Row("Redis", "unknown", f"answers, its version is not told ({needed} is needed)")
    seen = f"{state.product} {state.version}, {state.ping_ms:.1f} ms a round trip"
    if _numbers(state.version) < least:
        return Row("Redis", "fail", seen, f"{needed} is needed: choose another REDIS_URL")
    return Row("Redis", "ok", seen)


def persistence(state: ServerState) -> Row:
    """Judge what a restart of the server would cost."""
    what, advice = "Redis persistence", "turn on appendonly, or choose a plan that persists"
    match state.appends, state.snapshots:
        case True, _:
            return Row(what, "ok", "append-only file: a crash costs about a second")
        case None, _:
            return Row(what, "unknown", "not told", "ask your provider what a restart keeps")
        case _, None:
            return Row(
                what,
                "unknown",
                "no append-only file; snapshots are not told",
                "ask your provider what a restart keeps",
            )
        case _, "":
            return Row(what, "warn", "none: a restart of the server forgets everything", advice)
        case _, snapshots:
            seen = f"snapshots only (save {snapshots}): a crash costs what came after the last"
            return Row(what, "warn", seen, advice)


def eviction(state: ServerState) -> Row:
    """Judge what a full server does: it has to refuse, for what it drops is somebody's memory."""
    if state.policy is None:
        advice = "make sure that it is noeviction"
        return Row("Redis eviction", "unknown", "maxmemory-policy is not told", advice)
    if state.policy != "noeviction":
        seen = f"maxmemory-policy is {state.policy}: a full server drops memories and mail"
        advice = "set maxmemory-policy to noeviction, or choose another REDIS_URL"
        return Row("Redis eviction", "fail", seen, advice)
    return Row("Redis eviction", "ok", "noeviction")


def memory(state: ServerState) -> Row:
    """Judge how much room is left."""
    what, used, limit = "Redis memory", state.used_bytes, state.byte_limit
    if used is None or limit is None:
        return Row(what, "unknown", "not told", "look at your provider's page")
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
    """Judge whether one more process of ours fits, for old and new ones overlap on a deploy."""
    what, limit, others = "Redis connections", state.client_limit, (state.clients or 1) - 1
    if limit is None:
        seen = f"the limit is not told; a process takes up to {ours}"
        return Row(what, "unknown", seen, "look at your plan: two processes overlap on a deploy")
    seen = f"{others} of {limit} in use, a process takes up to {ours}"
    if ours > limit:
        return Row(what, "fail", seen, f"set REDIS_MAX_CONNECTIONS to {max(2, limit // 2)} or less")
    if others + ours > limit:
        advice = "lower REDIS_MAX_CONNECTIONS: a new process starts before the old one ends"
        return Row(what, "warn", seen, advice)
    return Row(what, "ok", seen)


def cluster(state: ServerState, address: str) -> Row:
    """Judge whether the address says what the server is."""
    if state.is_cluster and "+cluster://" not in address:
        scheme = "rediss" if address.startswith("rediss") else "redis"
        advice = f"let REDIS_URL begin with {scheme}+cluster://"
        return Row("Redis kind", "fail", "a Cluster, addressed as one server", advice)
    seen = "a Cluster (the figures are those of one node)" if state.is_cluster else "one server"
    return Row("Redis kind", "ok", seen)


def replicas(state: ServerState, wanted: int) -> Row:
    """Judge whether there are as many replicas as are waited for; with fewer nothing is taken."""
    what, linked = "Redis replicas", state.replicas
    if linked is None:
        advice = "make sure that it has as many as INTAKE_WAIT_REPLICAS"
        return Row(what, "unknown", f"not told, {wanted} must have each message", advice)
    seen = f"{linked} connected, {wanted} must have each message"
    if linked < wanted:
        return Row(what, "fail", f"{seen}: none is taken", "lower INTAKE_WAIT_REPLICAS")
    return Row(what, "ok", seen)


async def _ask(address: str, settings: Settings) -> ServerState:
    # One connection: old processes may be using all but one of a small plan's.
    client = await RedisClient.open(
        address, max_connections=1, tls_verify=settings.verifies_redis_tls
    )
    try:
        return await _read_state(client)
    finally:
        await client.close()


async def _read_state(client: RedisClient) -> ServerState:
    began = time.perf_counter()
    await client.ping()
    ping_ms = (time.perf_counter() - began) * 1000
    info: Mapping[str, str] = {}
    with suppress(StoreRefused):
        info = await client.info("default")
    config: Mapping[str, str] = {}
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
        byte_limit=_integer(info.get("maxmemory")),
        clients=_integer(info.get("connected_clients")),
        client_limit=_integer(info.get("maxclients") or config.get("maxclients")),
        replicas=_integer(info.get("connected_slaves")),
        is_cluster=info.get("cluster_enabled") == "1",
    )


def _trouble(error: StoreError, address: str, settings: Settings) -> Row:
    if isinstance(error, StoreRefused):
        advice = "look at user, password and scheme of REDIS_URL"
        return Row("Redis", "fail", "the server refuses this login or address", advice)
    advice = "look at host and port of REDIS_URL, and whether the server wants rediss://"
    if address.startswith("rediss") and settings.verifies_redis_tls:
        advice = (
            "look at host and port of REDIS_URL; if its certificate is self-signed, "
            "set REDIS_TLS_VERIFY=never"
        )
    return Row("Redis", "fail", "no answer", advice)


def _integer(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def _mb(count: int) -> str:
    return f"{count / 2**20:.1f} MB"
