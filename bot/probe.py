"""The tests of `python -m bot check` and their rows, plain enough for a platform's log.

An operator may show a row to anyone: it holds no secret, no error's own text and no person's text.
"""

import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import structlog

from memory.store.client import RedisClient
from memory.store.errors import StoreRefused, StoreUnfit
from memory.store.keys import Keys

log = structlog.get_logger(__name__)

_MIN_VERSION = {"Redis": (6, 2), "Valkey": (7, 2)}

# `unknown`: the service does not tell, and that is no reason to stop.
Verdict: TypeAlias = Literal["ok", "warn", "fail", "unknown"]


@dataclass(frozen=True, slots=True)
class Row:
    """What was tested, the verdict, what was seen, and what to do about it ("" if nothing)."""

    what: str
    verdict: Verdict
    seen: str
    advice: str = ""


Rows: TypeAlias = AsyncGenerator[Row, None]
"""What one group of checks finds; each row comes as soon as it is known."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One group of checks. A feature has its own in `probes.py`, as `PROBES`.

    If `run` raises a `ModelError`, the row is a warning: the bot works without what it tests.
    """

    name: str
    run: Callable[[Any], Rows]  # gets the settings of the bot
    is_needed: Callable[[Any], object] = lambda _: True  # else the group has no row
    model: str = "OPENAI_MODEL"  # the setting that names the model
    advice: str = ""  # follows the usual advice about the model


@dataclass(frozen=True, slots=True)
class StoreProbe:
    """A group of checks of what a bot has stored. It has no row if Redis does not answer."""

    name: str
    run: Callable[[Any, RedisClient, Keys], Rows]  # gets the settings of the bot


@dataclass(frozen=True, slots=True)
class ServerState:
    """What a server reports about itself."""

    info: Mapping[str, str]  # INFO, empty if it was refused
    ping_ms: float
    is_redis: bool = True  # false if its INFO has no fields
    ahead_s: float = 0  # how far its clock is ahead of ours


async def refuse_unfit(client: RedisClient, address: str) -> None:
    """Refuse a server on which no bot can run, and warn of one that drops memories.

    Raise `StoreUnfit`, or another `StoreError` if it does not answer.
    """
    state = await read_state(client)
    for row in (server(state), cluster(state, address)):
        if row.verdict == "fail":
            raise StoreUnfit(f"{row.seen}; {row.advice}")
    evicting = eviction(state)
    if evicting.verdict == "fail":
        log.warning("redis drops memories", detail=evicting.seen, advice=evicting.advice)


def server(state: ServerState) -> Row:
    """Judge product and version."""
    product = "Valkey" if "valkey_version" in state.info else "Redis"
    version, minimum = state.info.get(f"{product.lower()}_version"), _MIN_VERSION[product]
    needed = f"{product} {'.'.join(map(str, minimum))} or newer"
    if not state.is_redis:
        seen = "a server answers, but it is neither Redis nor Valkey"
    elif version is None:
        seen = f"answers, but does not report its version ({needed} is needed)"
        return Row("Redis", "unknown", seen)
    else:
        seen = f"{product} {version}, {state.ping_ms:.1f} ms for a round trip"
        if tuple(int(part) for part in version.split(".") if part.isdecimal()) >= minimum:
            return Row("Redis", "ok", seen)
    return Row("Redis", "fail", seen, f"{needed} is needed: choose another REDIS_URL")


def eviction(state: ServerState) -> Row:
    """Judge what a full server does: it must refuse writes and not drop memories."""
    policy = state.info.get("maxmemory_policy")
    if policy is None:
        advice = "make sure that it is noeviction"
        return Row("Redis eviction", "unknown", "maxmemory-policy is not reported", advice)
    if policy != "noeviction":
        seen = f"maxmemory-policy is {policy}: a full server drops memories and messages"
        advice = "set maxmemory-policy to noeviction, or choose another REDIS_URL"
        return Row("Redis eviction", "fail", seen, advice)
    return Row("Redis eviction", "ok", "noeviction")


def cluster(state: ServerState, address: str) -> Row:
    """Judge whether the address fits the kind of server, and whether that takes writes."""
    is_cluster = state.info.get("cluster_enabled") == "1"
    if is_cluster and "+cluster://" not in address:
        scheme = "rediss" if address.startswith("rediss") else "redis"
        advice = f"begin REDIS_URL with {scheme}+cluster://"
        return Row("Redis kind", "fail", "a Cluster, but the address is for one server", advice)
    if state.info.get("role") == "slave" and not is_cluster:
        advice = "give REDIS_URL the address of the primary"
        return Row("Redis kind", "fail", "a replica, which takes no writes", advice)
    seen = "a Cluster (the figures are those of one node)" if is_cluster else "one server"
    return Row("Redis kind", "ok", seen)


async def read_state(client: RedisClient) -> ServerState:
    """Return what a server reports about itself; raise `StoreError`."""
    began = time.perf_counter()
    await client.ping()
    ping_ms = (time.perf_counter() - began) * 1000
    info: Mapping[str, str] = {}
    is_redis = True
    with suppress(StoreRefused):
        info = await client.info("default")
        is_redis = bool(info)
    return ServerState(info, ping_ms, is_redis, await client.clock_ahead_s() if is_redis else 0)
