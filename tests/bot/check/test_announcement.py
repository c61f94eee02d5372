"""The row about announcements."""

from bot.check.announcement import check_announcement
from memory.memory import Memory
from memory.queue.announcements import Announcement
from memory.store.client import RedisClient
from memory.text.tokens import TokenCounter
from tests.bot.check.conftest import SettingsOf
from tests.memory.conftest import OPTIONS
from tests.valkey import ValkeyServer


async def test_the_row_says_whether_an_announcement_is_being_sent(
    store: RedisClient, valkey_server: ValkeyServer, tokens: TokenCounter, settings_of: SettingsOf
) -> None:
    memory = Memory(store, 42, tokens, None, OPTIONS)
    with_admin = settings_of(admin_user_ids="1")

    async def seen(bot: int = 42) -> list[str]:
        rows = check_announcement(with_admin, valkey_server.url, bot)
        return [row.seen async for row in rows]

    assert await seen() == ["none is being sent; admins: 1"]
    await memory.announcements.start(Announcement("one", 1, 70, 71, "en"))
    assert await seen() == ["one is being sent, chats left: 0; admins: 1"]
    assert await seen(43) == ["none is being sent; admins: 1"]
    off = [row async for row in check_announcement(settings_of(), valkey_server.url, 42)]
    assert [(row.verdict, row.seen) for row in off] == [("ok", "off: ADMIN_USER_IDS is not set")]
    assert [row async for row in check_announcement(with_admin, "redis://127.0.0.1:1", 42)] == []
