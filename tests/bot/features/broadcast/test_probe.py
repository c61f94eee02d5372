"""The row about announcements."""

from bot.features.broadcast.announcements import Announcement, Announcements
from bot.features.broadcast.probes import PROBES
from memory.memory import Memory
from memory.store.keys import Keys
from tests.bot.features.conftest import SettingsOf


async def test_the_row_says_whether_an_announcement_is_being_sent(
    memory: Memory, settings_of: SettingsOf
) -> None:
    [probe] = PROBES

    async def seen(bot: int = 42, admins: str = "1") -> list[str]:
        rows = probe.run(settings_of(admin_user_ids=admins), memory.client, Keys(bot))
        return [row.seen async for row in rows if row.verdict == "ok"]

    assert await seen() == ["none is being sent; admins: 1"]
    await Announcements(memory.store).start(Announcement("one", 1, 70, 71, "en"))
    assert await seen() == ["one is being sent, chats left: 0; admins: 1"]
    assert await seen(43) == ["none is being sent; admins: 1"]
    assert await seen(admins="") == ["off: ADMIN_USER_IDS is not set"]
