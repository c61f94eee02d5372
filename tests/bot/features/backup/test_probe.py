"""The row about backups."""

from bot.features.backup.probes import PROBES, backup_row
from bot.features.backup.saving import SavedCounts, Saving
from memory.memory import Memory
from memory.store.client import RedisClient
from memory.store.keys import Keys
from memory.text.tokens import TokenCounter
from tests.bot.features.conftest import SettingsOf
from tests.memory.conftest import OPTIONS

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
    store: RedisClient, tokens: TokenCounter, settings_of: SettingsOf
) -> None:
    await Saving(Memory(store, 42, tokens, None, OPTIONS).store, 42).note_done(SavedCounts())
    for bot, verdict in ((42, "ok"), (43, "warn")):
        [row] = [row async for row in PROBES[0].run(settings_of(), store, Keys(bot))]
        assert row.verdict == verdict
