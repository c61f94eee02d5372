"""Checks who may send announcements, and whether one is being sent."""

from bot.features.broadcast.announcements import NAME
from bot.probe import Row, Rows, StoreProbe
from config.settings import Settings
from memory.store.client import RedisClient
from memory.store.keys import Keys

_WHAT = "Announcements"


async def _announcements(settings: Settings, client: RedisClient, keys: Keys) -> Rows:
    if not settings.admin_user_ids:
        yield Row(_WHAT, "ok", "off: ADMIN_USER_IDS is not set")
        return
    is_open, left = await client.pipeline(
        [("HEXISTS", keys.of_feature(NAME, "job"), "due"), ("ZCARD", keys.of_feature(NAME, "left"))]
    )
    seen = f"one is being sent, chats left: {left}" if is_open else "none is being sent"
    yield Row(_WHAT, "ok", f"{seen}; admins: {len(settings.admin_user_ids)}")


PROBES = (StoreProbe(_WHAT, _announcements),)
