"""Redis or Valkey: does it answer, does it keep data over a restart, has it memory left.

Managed servers often refuse CONFIG, and some leave fields out of INFO. If a server does not report
something, the verdict is `unknown`, which is not a failure.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import TypeAlias

from bot import probe
from bot.features.check.advice import untrusted
from bot.probe import Row, Rows, StoreProbe, Verdict
from bot.runtime.maintenance import MAX_CLOCK_S
from bot.runtime.process import open_store
from config.settings import Settings
from memory.store.client import RedisClient
from memory.store.embedded import EmbeddedBusy, EmbeddedError
from memory.store.errors import LoginRefused, StoreError, StoreRefused, distrust
from memory.store.keys import Keys
from memory.store.store import LAYOUT, OtherLayout, check_layout

MAX_CONNECTIONS = 1  # on a small plan, running processes may use all others
_NEARLY_FULL = 0.8
_Figures: TypeAlias = Mapping[str, str]
"""Fields of INFO and of CONFIG by name, without those that the server does not report."""


async def check_store(address: str | EmbeddedError, settings: Settings) -> Rows:
    """Yield rows about the server at `address`, or why the embedded one did not start."""
    if isinstance(address, EmbeddedError):
        # A platform may check a release where the disk of the bot is missing.
        is_busy = isinstance(address, EmbeddedBusy)
        verdict: Verdict = "warn" if is_busy or settings.platform else "fail"
        advice = "stop the bot that runs there" if is_busy else "mend this, or use another DATA_DIR"
        seen = str(address).partition("\n")[0]
        yield Row("Redis", verdict, seen, f"{advice}, or set REDIS_URL")
        return
    try:
        async with open_store(address, settings, MAX_CONNECTIONS) as client:
            state = await probe.read_state(client)
            figures = dict(state.info)
            if state.is_redis:
                with suppress(StoreRefused):
                    figures |= await client.call("CONFIG GET", "save", "maxclients")
    except StoreError as error:
        yield _trouble(error, address)
        return
    yield probe.server(state)
    yield persistence(figures)
    yield probe.eviction(state)
    yield memory(figures, settings.redis_memory_mb)
    yield connections(figures, settings.redis_max_connections)
    yield probe.cluster(state, address)
    if abs(state.ahead_s) > MAX_CLOCK_S:
        side = "behind" if state.ahead_s > 0 else "ahead of"
        seen = f"this machine is {round(abs(state.ahead_s))} s {side} Redis"
        yield Row("Clock", "warn", seen, "let NTP set the clocks: reminders come at the wrong time")
    if settings.intake_wait_replicas:
        yield replicas(figures, settings.intake_wait_replicas)


def persistence(figures: _Figures) -> Row:
    """Judge what a crash of the server would lose."""
    what, advice = "Redis persistence", "turn on appendonly, or choose a plan that keeps data"
    match figures.get("aof_enabled"), figures.get("save"):
        case "1", _:
            return Row(what, "ok", "append-only file: a crash loses about a second")
        case None, _:
            return Row(what, "unknown", "not reported", "ask your provider what a restart keeps")
        case _, None:
            seen = "no append-only file; snapshots are not reported"
            return Row(what, "unknown", seen, "ask your provider what a restart keeps")
        case _, "":
            return Row(what, "warn", "none: a restart of the server loses everything", advice)
        case _, snapshots:
            seen = f"snapshots only (save {snapshots}): a crash loses what came after the last one"
            return Row(what, "warn", seen, advice)


def memory(figures: _Figures, plan_mb: int = 0) -> Row:
    """Judge how much memory is left; the plan counts if the server reports no limit."""
    what = "Redis memory"
    used, limit = _integer(figures, "used_memory"), _integer(figures, "maxmemory")
    is_told = not limit and plan_mb > 0  # the server itself goes on beyond it
    limit = plan_mb * 2**20 if is_told else limit
    if used is None or limit is None:
        return Row(what, "unknown", "not reported", "look at your provider's page")
    if limit == 0:
        return Row(what, "ok", f"{_mb(used)} used, no limit set")
    seen = f"{_mb(used)} of {_mb(limit)} used, {used / limit:.0%}"
    advice = "choose a larger plan, or lower MEMORY_TTL_DAYS"
    if used >= limit:
        return Row(what, "warn" if is_told else "fail", f"{seen}: it is full", advice)
    if used >= _NEARLY_FULL * limit:
        return Row(what, "warn", seen, advice)
    return Row(what, "ok", seen)


def connections(figures: _Figures, ours: int) -> Row:
    """Judge whether one more process of ours fits: during a deploy the old and the new one run."""
    what, limit = "Redis connections", _integer(figures, "maxclients")
    others = (_integer(figures, "connected_clients") or 1) - 1  # without ourselves
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


def replicas(figures: _Figures, wanted: int) -> Row:
    """Judge whether there are as many replicas as intake waits for; else it accepts nothing."""
    what, linked = "Redis replicas", _integer(figures, "connected_slaves")
    if linked is None:
        advice = "make sure that it has as many as INTAKE_WAIT_REPLICAS"
        return Row(what, "unknown", f"not reported, {wanted} must have each message", advice)
    seen = f"{linked} connected, {wanted} must have each message"
    if linked < wanted:
        return Row(what, "fail", f"{seen}: no message is accepted", "lower INTAKE_WAIT_REPLICAS")
    return Row(what, "ok", seen)


def _integer(figures: _Figures, name: str) -> int | None:
    text = figures.get(name)
    return int(text) if text and text.isdecimal() else None


def _trouble(error: StoreError, address: str) -> Row:
    if isinstance(error, LoginRefused | StoreRefused):
        advice = "check user, password and database of REDIS_URL; +cluster is for a Cluster only"
        return Row("Redis", "fail", "the server refused this login or address", advice)
    if why := distrust(error):
        seen, advice = untrusted(error, "REDIS_URL")
        accepting = "; or accept it with ?ssl_cert_reqs=none at its end" if "signed" in why else ""
        return Row("Redis", "fail", seen, advice + accepting)
    scheme = "redis" if address.startswith("rediss") else "rediss"
    advice = f"check host and port of REDIS_URL, and whether the server needs {scheme}://"
    return Row("Redis", "fail", "no answer", advice)


def _mb(count: int) -> str:
    return f"{count / 2**20:.1f} MB"


async def _stored_data(_: Settings, client: RedisClient, keys: Keys) -> Rows:
    what = "Stored data"
    await client.call("EVAL", "return 1", 0)  # an access list may forbid scripts
    try:
        await check_layout(client, keys)
    except OtherLayout as other:
        yield Row(what, "fail", "another version has stored it", str(other).partition(": ")[2])
    else:
        yield Row(what, "ok", f"layout {LAYOUT}, as this version reads it")


STORED_DATA = StoreProbe("Stored data", _stored_data)
