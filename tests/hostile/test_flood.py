"""If a member of a group floods the bot, only that member is refused."""

import pytest

from memory.memory import Memory
from memory.queue.mailbox import Entry, Mailbox, MailboxFull, Outcome
from memory.store.client import RedisClient
from memory.store.keys import Keys
from tests.memory.turns import ANN, BOB, GROUP

DAY_S = 86_400


@pytest.fixture
def mailbox(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> Mailbox:
    monkeypatch.setattr("memory.queue.mailbox.MAX_UPDATES", 3)
    return memory.mailbox


async def put(mailbox: Mailbox, update_id: int, sender: int, *, is_alone: bool = False) -> Outcome:
    return await mailbox.put(GROUP, Entry(update_id, sender, is_alone, b"words"))


async def test_a_flood_is_refused_only_to_its_sender_whose_commands_go_on(mailbox: Mailbox) -> None:
    for update_id in range(1, 4):
        assert await put(mailbox, update_id, ANN) is Outcome.TAKEN
    with pytest.raises(MailboxFull):
        await put(mailbox, 4, ANN)
    assert await put(mailbox, 1, ANN) is Outcome.DUPLICATE
    assert await put(mailbox, 5, BOB) is Outcome.TAKEN
    for update_id in range(11, 14):
        assert await put(mailbox, update_id, ANN, is_alone=True) is Outcome.TAKEN
    with pytest.raises(MailboxFull):
        await put(mailbox, 14, ANN, is_alone=True)


@pytest.mark.parametrize(
    ("days_ago", "before", "outcome"),
    [(0, 3, "full"), (1, 0, "full"), (1, 3, "full"), (2, 3, "taken"), (-1, 3, "taken")],
)
async def test_a_share_counts_two_days(
    mailbox: Mailbox, store: RedisClient, days_ago: int, before: int, outcome: str
) -> None:
    """The server's clock decides. If it is set back, counts from the future no longer matter."""
    (server_s, _) = await store.call("TIME")
    meta = Keys(42).scope(GROUP).meta
    day = int(server_s) // DAY_S - days_ago
    today = 3 if days_ago else 0
    await store.call("HSET", meta, f"sent:t:{ANN}", f"{day}|{today}|{before}")
    try:
        assert (await put(mailbox, 1, ANN)).value == outcome
    except MailboxFull:
        assert outcome == "full"
