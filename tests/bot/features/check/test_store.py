"""What the check finds out about Redis on real servers, and how it judges each figure."""

import time

import pytest
from structlog.testing import capture_logs

from bot import probe
from bot.features.check import store
from bot.features.check.command_line import table
from bot.features.check.store import STORED_DATA, check_store
from bot.probe import ServerState
from memory.store import client
from memory.store.client import RedisClient
from memory.store.keys import Keys
from memory.store.store import LAYOUT
from tests.bot.features.conftest import SettingsOf, rows_of
from tests.valkey import OneNodeCluster, ValkeyServer, free_port


async def test_a_server_with_the_right_configuration_has_only_ok_rows(
    own_server: ValkeyServer, settings_of: SettingsOf
) -> None:
    own_server.ask("CONFIG SET appendonly yes")
    own_server.ask("CONFIG SET maxmemory 26214400")
    rows = await rows_of(check_store(own_server.url, settings_of()))
    assert {row.verdict for row in rows.values()} == {"ok"}
    assert list(rows) == [
        *("Redis", "Redis persistence", "Redis eviction"),
        *("Redis memory", "Redis connections", "Redis kind"),
    ]
    assert " of 25.0 MB used" in rows["Redis memory"].seen
    assert rows["Redis connections"].seen == "0 of 10000 in use, a process opens up to 4"


async def test_each_wrong_setting_of_a_server_has_its_row(
    own_server: ValkeyServer, settings_of: SettingsOf
) -> None:
    for wrong in ("maxmemory-policy allkeys-lru", "maxmemory 1", "maxclients 20"):
        own_server.ask(f"CONFIG SET {wrong}")
    settings = settings_of(redis_max_connections=30, intake_wait_replicas=1)
    rows = await rows_of(check_store(own_server.url, settings))
    full = rows.pop("Redis memory")
    assert (full.verdict, full.advice) == ("fail", "choose a larger plan, or lower MEMORY_TTL_DAYS")
    dropping = "maxmemory-policy is allkeys-lru: a full server drops memories and messages"
    shown = table([row for row in rows.values() if row.verdict != "ok"]).splitlines()[:-2]
    assert [" ".join(line.split()) for line in shown] == [
        "warn Redis persistence none: a restart of the server loses everything",
        "-> turn on appendonly, or choose a plan that keeps data",
        f"FAIL Redis eviction {dropping}",
        "-> set maxmemory-policy to noeviction, or choose another REDIS_URL",
        "FAIL Redis connections 0 of 20 in use, a process opens up to 30",
        "-> set REDIS_MAX_CONNECTIONS to 10 or less",
        "FAIL Redis replicas 0 connected, 1 must have each message: no message is accepted",
        "-> lower INTAKE_WAIT_REPLICAS",
    ]


async def test_the_start_warns_of_a_server_that_drops_memories(own_server: ValkeyServer) -> None:
    own_server.ask("CONFIG SET maxmemory-policy allkeys-lru")
    server = await RedisClient.open(own_server.url)
    with capture_logs() as logs:
        await probe.refuse_unfit(server, own_server.url)
    await server.close()
    [warned] = logs
    assert (warned["log_level"], warned["event"]) == ("warning", "redis drops memories")
    assert "allkeys-lru" in warned["detail"]
    assert "noeviction" in warned["advice"]


@pytest.mark.parametrize(
    ("refused", "unknown"),
    [
        ("-config", ["Redis persistence"]),
        (
            "-config -info",
            [f"Redis{of}" for of in ("", " persistence", " eviction", " memory", " connections")],
        ),
    ],
)
async def test_a_value_that_a_managed_server_hides_is_unknown_and_not_a_failure(
    own_server: ValkeyServer, settings_of: SettingsOf, refused: str, unknown: list[str]
) -> None:
    own_server.ask(f"ACL SETUSER default {refused}")
    rows = await rows_of(check_store(own_server.url, settings_of()))
    assert [what for what, row in rows.items() if row.verdict == "unknown"] == unknown
    assert {row.verdict for what, row in rows.items() if what not in unknown} == {"ok"}


async def test_a_cluster_with_the_address_of_one_server_fails(
    cluster_server: OneNodeCluster, settings_of: SettingsOf
) -> None:
    rows = await rows_of(check_store(cluster_server.url, settings_of()))
    assert rows["Redis kind"].verdict == "ok"
    plain = cluster_server.url.replace("+cluster", "")
    row = (await rows_of(check_store(plain, settings_of())))["Redis kind"]
    assert (row.verdict, row.advice) == ("fail", "begin REDIS_URL with redis+cluster://")


async def test_a_replica_fails_because_it_takes_no_writes(
    own_server: ValkeyServer, settings_of: SettingsOf
) -> None:
    own_server.ask("REPLICAOF 127.0.0.1 1")
    row = (await rows_of(check_store(own_server.url, settings_of())))["Redis kind"]
    assert (row.verdict, row.advice) == ("fail", "give REDIS_URL the address of the primary")


async def test_an_unreachable_server_has_one_failed_row(settings_of: SettingsOf) -> None:
    for scheme, other in (("redis", "rediss"), ("rediss", "redis")):
        address = f"{scheme}://127.0.0.1:{free_port()}"
        [row] = (await rows_of(check_store(address, settings_of()))).values()
        assert (row.verdict, row.seen) == ("fail", "no answer")
        assert row.advice.endswith(f"needs {other}://")


@pytest.mark.parametrize("wrong", ["redis://anna:hunter2@", "redis+cluster://"])
async def test_an_address_that_is_refused_has_one_failed_row_and_no_password_is_shown(
    valkey: str, settings_of: SettingsOf, wrong: str
) -> None:
    [row] = (await rows_of(check_store(valkey.replace("redis://", wrong), settings_of()))).values()
    assert (row.verdict, row.seen) == ("fail", "the server refused this login or address")
    assert "hunter2" not in repr(row)


def test_an_outdated_server_fails() -> None:
    for version, verdict in (("6.0.16", "fail"), ("6.2.14", "ok")):
        assert probe.server(ServerState({"redis_version": version}, 0.5)).verdict == verdict
    for version in ("7.2.0", "9.1.2"):
        fine = ServerState({"redis_version": "7.2.4", "valkey_version": version}, 0.5)
        assert probe.server(fine).verdict == "ok"
    assert probe.server(ServerState({}, 0.5)).verdict == "unknown"


def test_persistence_is_judged_by_what_a_crash_loses() -> None:
    none, appends, snapshots = {"aof_enabled": "0"}, {"aof_enabled": "1"}, {"save": "3600 1"}
    assert store.persistence({**appends, "save": ""}).verdict == "ok"
    assert store.persistence(appends).verdict == "ok"
    for lossy in ({**none, "save": ""}, {**none, **snapshots}):
        assert store.persistence(lossy).verdict == "warn"
    for hidden in (none, {}):
        assert store.persistence(hidden).verdict == "unknown"


def test_replicas_memory_and_connections_are_judged_by_what_is_left_for_us() -> None:
    for linked, verdict in (("1", "fail"), ("2", "ok")):
        assert store.replicas({"connected_slaves": linked}, wanted=2).verdict == verdict
    assert store.replicas({}, wanted=2).verdict == "unknown"
    for used, verdict in (("79", "ok"), ("80", "warn"), ("99", "warn"), ("100", "fail")):
        assert store.memory({"used_memory": used, "maxmemory": "100"}).verdict == verdict
    unlimited = {"used_memory": f"{24 * 2**20}", "maxmemory": "0"}
    assert [store.memory(unlimited, plan_mb=mb).verdict for mb in (0, 25)] == ["ok", "warn"]
    for clients, verdict in (("1", "ok"), ("17", "ok"), ("18", "warn"), ("20", "warn")):
        few = {"connected_clients": clients, "maxclients": "20"}
        assert store.connections(few, ours=4).verdict == verdict


@pytest.mark.parametrize(("ahead_s", "seen"), [(31, "31 s behind"), (-90, "90 s ahead of")])
async def test_clocks_that_differ_get_a_warning(
    valkey: str, settings_of: SettingsOf, monkeypatch: pytest.MonkeyPatch, ahead_s: int, seen: str
) -> None:
    monkeypatch.setattr(client, "time", lambda: time.time() - ahead_s)
    row = (await rows_of(check_store(valkey, settings_of())))["Clock"]
    assert (row.verdict, row.seen) == ("warn", f"this machine is {seen} Redis")


@pytest.mark.parametrize(("layout", "verdict"), [(1, "fail"), (LAYOUT, "ok"), (99, "fail")])
async def test_data_of_another_version_is_announced(
    store: RedisClient, settings_of: SettingsOf, layout: int, verdict: str
) -> None:
    keys = Keys(42)
    await store.call("SET", keys.layout, layout)
    await store.call("ZADD", keys.conversations[0], 1, "c:7:0")
    rows = [row async for row in STORED_DATA.run(settings_of(), store, keys)]
    assert rows[0].verdict == verdict
