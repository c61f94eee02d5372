"""Who may announce something to everybody, and is an announcement being sent now."""

from bot.check.rows import Row, Rows
from bot.check.store import one_connection
from config.settings import Settings
from memory.queue.announcements import count_left
from memory.store.errors import StoreError
from memory.store.keys import Keys

_WHAT = "Announcements"


async def check_announcement(settings: Settings, address: str, bot_id: int) -> Rows:
    """Yield one row, or none if Redis does not answer, which has a row of its own."""
    if not settings.admin_user_ids:
        yield Row(_WHAT, "ok", "off: ADMIN_USER_IDS is not set")
        return
    try:
        async with one_connection(address, settings) as client:
            left = await count_left(client, Keys(bot_id))
    except StoreError:
        return
    seen = "none is being sent" if left is None else f"one is being sent, chats left: {left}"
    yield Row(_WHAT, "ok", f"{seen}; admins: {len(settings.admin_user_ids)}")
