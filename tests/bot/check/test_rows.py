"""The table as a log shows it."""

from bot.check.rows import Row, is_passed, table

ROWS = [
    Row("Redis", "ok", "Valkey 9.1.2"),
    Row("Redis eviction", "fail", "maxmemory-policy is allkeys-lru", "set it to noeviction"),
    Row("Redis memory", "unknown", "not reported"),
    Row("Telegram", "warn", "not reached"),
]


def test_a_row_is_a_line_its_advice_is_another_and_the_last_line_is_a_summary() -> None:
    assert table(ROWS).splitlines() == [
        "ok       Redis           Valkey 9.1.2",
        "FAIL     Redis eviction  maxmemory-policy is allkeys-lru",
        "                         -> set it to noeviction",
        "unknown  Redis memory    not reported",
        "warn     Telegram        not reached",
        "",
        "1 ok, 1 warn, 1 unknown, 1 failed",
    ]


def test_only_a_failed_row_makes_the_check_fail() -> None:
    assert not is_passed(ROWS)
    assert is_passed([row for row in ROWS if row.verdict != "fail"])
