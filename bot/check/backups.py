"""Can this version read what is stored, and was a backup made with `python -m bot backup`."""

import time

from bot.check.rows import Row, Rows
from bot.check.store import one_connection
from config.settings import Settings
from memory.backup.saving import last_backup
from memory.store.client import RedisClient
from memory.store.errors import StoreError
from memory.store.keys import Keys
from memory.store.migration import LAYOUT, LayoutTooNew, stored_layout
from memory.store.scope_index import count_scopes

_WHAT = "Backup"
_OLD_DAYS = 30
_HOW = "python -m bot backup FILE, every night by your scheduler"


async def check_backups(settings: Settings, address: str, bot_id: int) -> Rows:
    """Yield two rows, or none if Redis does not answer, which has a row of its own."""
    try:
        async with one_connection(address, settings) as client:
            layout = await _layout_row(client, Keys(bot_id))
            made_at = await last_backup(client, Keys(bot_id))
    except StoreError:
        return
    yield layout
    yield backup_row(made_at, time.time())


async def _layout_row(client: RedisClient, keys: Keys) -> Row:
    what = "Stored data"
    try:
        layout = await stored_layout(client, keys)
    except LayoutTooNew as newer:
        return Row(what, "fail", "a newer version has stored it", str(newer).partition(": ")[2])
    if layout == LAYOUT or not await count_scopes(client, keys):
        return Row(what, "ok", f"layout {LAYOUT}, as this version reads it")
    seen = f"layout {layout}: the next start changes it to layout {LAYOUT}"
    return Row(what, "warn", seen, "make a backup and stop all processes of the older version")


def backup_row(made_at: float, now: float) -> Row:
    """Return the row for a backup at a time, 0 for none (Unix seconds)."""
    if not made_at:
        return Row(_WHAT, "warn", "none was made yet", _HOW)
    days = int(max(0, now - made_at) // 86_400)
    seen = f"made {days} days ago" if days > 1 else "made within the last two days"
    return Row(_WHAT, "warn", seen, _HOW) if days > _OLD_DAYS else Row(_WHAT, "ok", seen)
