"""The table as it stands in a log."""

from bot.check.rows import Row, is_passed, table

ROWS = [
    Row("Redis", "ok", "Valkey 9.1.2"),
    Row("Redis eviction", "fail", "maxmemory-policy is allkeys-lru", "set it to noeviction"),
    Row("Redis memory", "unknown", "not told"),
    Row("Telegram", "warn", "not reached"),
]


def test_each_row_is_a_line_its_advice_another_and_a_summary_ends_the_table() -> None:
    assert table(ROWS).splitlines() == [
        "ok       Redis           Valkey 9.1.2",
        "FAIL     Redis eviction  maxmemory-policy is allkeys-lru",
        "                         -> set it to noeviction",
        "unknown  Redis memory    not told",
        "warn     Telegram        not reached",
        "",
        "1 ok, 1 warn, 1 unknown, 1 failed",
    ]


def test_only_a_failure_fails() -> None:
    assert not is_passed(ROWS)
    assert is_passed([row for row in ROWS if row.verdict != "fail"])
