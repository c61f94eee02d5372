"""The table as a log shows it."""

from bot.features.check.command_line import is_passed, next_steps, table
from bot.probe import Row

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


def test_it_ends_with_the_three_most_useful_steps() -> None:
    offered = Row("Inspector", "ok", "off", "set a token")
    price = Row("Backup", "warn", "none", "make one")
    more = [Row("Telegram", "ok", "the token belongs to @b"), offered, offered, price]
    assert next_steps([*more, ROWS[1]]).splitlines() == [
        "Next:",
        "1. Redis eviction: set it to noeviction",
        "2. Backup: make one",
        "3. Inspector: set a token",
    ]
    assert next_steps(more).splitlines()[1:] == [
        "1. start the bot, and write /start to it",
        "2. Backup: make one",
        "3. Inspector: set a token",
    ]
    assert next_steps(ROWS[2:3]) == "Nothing is left to do."
