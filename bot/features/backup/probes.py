"""Was a backup made with `python -m bot backup`."""

import time

from bot.features.backup.saving import last_backup
from bot.probe import Row, Rows, StoreProbe
from config.settings import Settings
from memory.store.client import RedisClient
from memory.store.keys import Keys

_WHAT = "Backup"
_OLD_DAYS = 30
_HOW = "python -m bot backup FILE, every night by your scheduler"


async def _backup(_: Settings, client: RedisClient, keys: Keys) -> Rows:
    yield backup_row(await last_backup(client, keys), time.time())


def backup_row(made_at: float, now: float) -> Row:
    """Return the row for a backup at a time, 0 for none (Unix seconds)."""
    if not made_at:
        return Row(_WHAT, "warn", "none was made yet", _HOW)
    days = int(max(0, now - made_at) // 86_400)
    seen = f"made {days} days ago" if days > 1 else "made within the last two days"
    return Row(_WHAT, "warn", seen, _HOW) if days > _OLD_DAYS else Row(_WHAT, "ok", seen)


PROBES = (StoreProbe(_WHAT, _backup),)
