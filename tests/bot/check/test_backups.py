"""The row about backups."""

import pytest

from bot.check.backups import backup_row, check_backups
from memory.backup.saving import SavedCounts, Saving
from memory.memory import Memory
from memory.store.client import RedisClient
from memory.store.keys import Keys
from memory.store.migration import LAYOUT
from memory.text.tokens import TokenCounter
from tests.bot.check.conftest import SettingsOf
from tests.memory.conftest import OPTIONS
from tests.valkey import ValkeyServer

DAY_S = 86_400


def test_the_row_says_how_old_the_last_backup_is() -> None:
    rows = [backup_row(made_at, 100 * DAY_S) for made_at in (0, 10 * DAY_S, 90 * DAY_S, 1e12)]
    assert [(row.verdict, row.seen) for row in rows] == [
        ("warn", "none was made yet"),
        ("warn", "made 90 days ago"),
        ("ok", "made 10 days ago"),
        ("ok", "made within the last two days"),
    ]


async def test_a_backup_is_seen_by_the_check_of_its_bot_alone(
    store: RedisClient, valkey_server: ValkeyServer, tokens: TokenCounter, settings_of: SettingsOf
) -> None:
    await Saving(Memory(store, 42, tokens, None, OPTIONS).store, 42).note_done(SavedCounts())
    for bot, verdict in ((42, "ok"), (43, "warn")):
        rows = [row async for row in check_backups(settings_of(), valkey_server.url, bot)]
        assert [row.verdict for row in rows] == ["ok", verdict]


@pytest.mark.parametrize(("layout", "verdict"), [(1, "warn"), (LAYOUT, "ok"), (99, "fail")])
async def test_data_of_another_version_is_announced(
    store: RedisClient,
    valkey_server: ValkeyServer,
    settings_of: SettingsOf,
    layout: int,
    verdict: str,
) -> None:
    keys = Keys(42)
    await store.call("SET", keys.layout, layout)
    await store.call("ZADD", keys.conversations(0), 1, "c:7:0")
    rows = [row async for row in check_backups(settings_of(), valkey_server.url, 42)]
    assert rows[0].verdict == verdict
