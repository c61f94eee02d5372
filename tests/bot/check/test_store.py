"""What is found out about Redis, on real servers; and how each figure is judged."""

from dataclasses import replace

import pytest

from bot.check import store
from bot.check.rows import Row
from bot.check.store import ServerState, check_store
from tests.bot.check.conftest import SettingsOf, rows_of
from tests.valkey import OneNodeCluster, ValkeyServer, free_port

FINE = ServerState(
    product="Redis",
    version="7.0.15",
    ping_ms=0.5,
    appends=True,
    snapshots="",
    policy="noeviction",
    used_bytes=1_000_000,
    byte_limit=25 * 2**20,
    clients=5,
    client_limit=20,
    replicas=0,
    is_cluster=False,
)


async def test_a_server_in_order_has_no_failed_row(
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
    assert rows["Redis connections"].seen == "0 of 10000 in use, a process takes up to 4"


async def test_an_evicting_server_fails(own_server: ValkeyServer, settings_of: SettingsOf) -> None:
    own_server.ask("CONFIG SET maxmemory-policy allkeys-lru")
    row = (await rows_of(check_store(own_server.url, settings_of())))["Redis eviction"]
    assert row == Row(
        "Redis eviction",
        "fail",
        "maxmemory-policy is allkeys-lru: a full server drops memories and mail",
        "set maxmemory-policy to noeviction, or choose another REDIS_URL",
    )


async def test_a_server_that_keeps_nothing_is_warned_of(
    own_server: ValkeyServer, settings_of: SettingsOf
) -> None:
    row = (await rows_of(check_store(own_server.url, settings_of())))["Redis persistence"]
    assert (row.verdict, row.seen) == ("warn", "none: a restart of the server forgets everything")


async def test_what_a_managed_server_does_not_tell_is_unknown_and_no_failure(
    own_server: ValkeyServer, settings_of: SettingsOf
) -> None:
    own_server.ask("ACL SETUSER default -config -info")
    rows = await rows_of(check_store(own_server.url, settings_of()))
    own_server.ask("ACL SETUSER default +config +info")
    verdicts = {what: row.verdict for what, row in rows.items()}
    assert verdicts.pop("Redis kind") == "ok"
    assert set(verdicts.values()) == {"unknown"}


async def test_a_server_that_refuses_config_still_tells_most(
    own_server: ValkeyServer, settings_of: SettingsOf
) -> None:
    own_server.ask("ACL SETUSER default -config")
    rows = await rows_of(check_store(own_server.url, settings_of()))
    own_server.ask("ACL SETUSER default +config")
    unknown = [what for what, row in rows.items() if row.verdict == "unknown"]
    assert unknown == ["Redis persistence"]


async def test_a_full_server_fails(own_server: ValkeyServer, settings_of: SettingsOf) -> None:
    own_server.ask("CONFIG SET maxmemory 1")
    row = (await rows_of(check_store(own_server.url, settings_of())))["Redis memory"]
    own_server.ask("CONFIG SET maxmemory 0")
    assert (row.verdict, row.advice) == ("fail", "choose a larger plan, or lower MEMORY_TTL_DAYS")


async def test_more_connections_than_the_plan_has_fail(
    own_server: ValkeyServer, settings_of: SettingsOf
) -> None:
    own_server.ask("CONFIG SET maxclients 20")
    settings = settings_of(redis_max_connections=30)
    row = (await rows_of(check_store(own_server.url, settings)))["Redis connections"]
    assert (row.verdict, row.advice) == ("fail", "set REDIS_MAX_CONNECTIONS to 10 or less")


async def test_fewer_replicas_than_are_waited_for_fail(
    valkey: str, settings_of: SettingsOf
) -> None:
    settings = settings_of(intake_wait_replicas=1)
    assert (await rows_of(check_store(valkey, settings)))["Redis replicas"] == Row(
        "Redis replicas",
        "fail",
        "0 connected, 1 must have each message: none is taken",
        "lower INTAKE_WAIT_REPLICAS",
    )


async def test_a_cluster_is_told_from_a_server(
    cluster_server: OneNodeCluster, settings_of: SettingsOf
) -> None:
    rows = await rows_of(check_store(cluster_server.url, settings_of()))
    assert rows["Redis kind"].verdict == "ok"
    plain = cluster_server.url.replace("+cluster", "")
    rows = await rows_of(check_store(plain, settings_of()))
    assert rows["Redis kind"].verdict == "fail"
    assert rows["Redis kind"].advice == "let REDIS_URL begin with redis+cluster://"


async def test_a_server_addressed_as_a_cluster_is_one_failed_row(
    valkey: str, settings_of: SettingsOf
) -> None:
    rows = await rows_of(check_store(valkey.replace("redis:", "redis+cluster:"), settings_of()))
    assert [row.verdict for row in rows.values()] == ["fail"]


async def test_no_server_is_one_failed_row(settings_of: SettingsOf) -> None:
    rows = await rows_of(check_store(f"redis://127.0.0.1:{free_port()}", settings_of()))
    assert [(row.verdict, row.seen) for row in rows.values()] == [("fail", "no answer")]


async def test_where_certificates_are_checked_their_setting_is_named(
    settings_of: SettingsOf,
) -> None:
    [row] = (
        await rows_of(check_store(f"rediss://127.0.0.1:{free_port()}", settings_of()))
    ).values()
    assert row.advice.endswith("if its certificate is self-signed, set REDIS_TLS_VERIFY=never")


async def test_a_wrong_password_is_one_failed_row_that_does_not_show_it(
    own_server: ValkeyServer, settings_of: SettingsOf
) -> None:
    address = own_server.url.replace("//", "//anna:hunter2@")
    [row] = (await rows_of(check_store(address, settings_of()))).values()
    assert (row.verdict, row.seen) == ("fail", "the server refuses this login or address")
    assert "hunter2" not in repr(row)


async def test_an_embedded_server_in_use_is_no_failure(settings_of: SettingsOf) -> None:
    [row] = (await rows_of(check_store(None, settings_of()))).values()
    assert row.verdict == "warn"


@pytest.mark.parametrize(
    ("product", "version", "verdict"),
    [
        ("Redis", "6.0.16", "fail"),
        ("Redis", "6.2.14", "ok"),
        ("Valkey", "7.2.0", "ok"),
        ("Valkey", "9.1.2", "ok"),
        ("Redis", None, "unknown"),
    ],
)
def test_old_servers_fail(product: str, version: str | None, verdict: str) -> None:
    state = replace(FINE, product=product, version=version)
    assert store.server(state).verdict == verdict


@pytest.mark.parametrize(
    ("state", "verdict"),
    [
        (replace(FINE, appends=True, snapshots=None), "ok"),
        (replace(FINE, appends=False, snapshots="3600 1"), "warn"),
        (replace(FINE, appends=False, snapshots=""), "warn"),
        (replace(FINE, appends=False, snapshots=None), "unknown"),
        (replace(FINE, appends=None, snapshots=None), "unknown"),
    ],
)
def test_persistence_is_judged_by_what_a_crash_costs(state: ServerState, verdict: str) -> None:
    assert store.persistence(state).verdict == verdict


@pytest.mark.parametrize(("linked", "verdict"), [(None, "unknown"), (1, "fail"), (2, "ok")])
def test_as_many_replicas_are_needed_as_are_waited_for(linked: int | None, verdict: str) -> None:
    assert store.replicas(replace(FINE, replicas=linked), wanted=2).verdict == verdict


@pytest.mark.parametrize(
    ("used", "verdict"), [(79, "ok"), (80, "warn"), (99, "warn"), (100, "fail")]
)
def test_memory_is_judged_by_its_share(used: int, verdict: str) -> None:
    assert store.memory(replace(FINE, used_bytes=used, byte_limit=100)).verdict == verdict


@pytest.mark.parametrize(
    ("clients", "verdict"), [(1, "ok"), (17, "ok"), (18, "warn"), (20, "warn")]
)
def test_a_new_process_has_to_fit_beside_those_that_run(clients: int, verdict: str) -> None:
    assert store.connections(replace(FINE, clients=clients), ours=4).verdict == verdict
