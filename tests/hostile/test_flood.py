"""If a member of a group floods the bot, only that member is refused."""

import time

import pytest

from memory.memory import Memory
from memory.queue.mailbox import MAX_UPDATES, Entry, Mailbox, MailboxFull, Outcome
from memory.store.client import RedisClient
from memory.store.keys import Keys, Scope
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.memory.turns import ANN, BOB, GROUP

US = "@ricordo_bot"
DAY_S = 86_400


@pytest.fixture
def mailbox(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> Mailbox:
    monkeypatch.setattr("memory.queue.mailbox.MAX_UPDATES", 3)
    return memory.mailbox


async def put(mailbox: Mailbox, update_id: int, sender: int, *, is_alone: bool = False) -> Outcome:
    return await mailbox.put(GROUP, Entry(update_id, sender, is_alone, b"words"))


async def test_a_flood_is_refused_only_to_its_sender(mailbox: Mailbox) -> None:
    for update_id in range(1, 4):
        assert await put(mailbox, update_id, ANN) is Outcome.TAKEN
    with pytest.raises(MailboxFull):
        await put(mailbox, 4, ANN)
    assert await put(mailbox, 1, ANN) is Outcome.DUPLICATE
    assert await put(mailbox, 5, BOB) is Outcome.TAKEN


async def test_commands_have_their_own_share(mailbox: Mailbox) -> None:
    for update_id in range(1, 4):
        await put(mailbox, update_id, ANN)
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


async def test_one_member_cannot_make_the_bot_deaf_to_a_group(rig: Rig, store: RedisClient) -> None:
    """Before the fix, questions and commands there got no answer for up to 48 hours."""
    await rig.start()
    (anna, _), (ben, _) = rig.anna(), rig.ben()
    mallory, _ = rig.person(1666, "Mallory")
    group = rig.telegram.group("Club", [ben, mallory], [anna])

    # What a flood leaves behind: many remembered ids, and the sender's count.
    named, now_ms = rig.keys.scope(Scope.of_chat(group.id)), int(time.time() * 1000)
    ids = [part for n in range(4 * MAX_UPDATES) for part in (now_ms - n, -n - 1)]
    await store.call("ZADD", named.seen, *ids)
    count = f"{now_ms // (DAY_S * 1000)}|{MAX_UPDATES}|0"
    await store.call("HSET", named.meta, f"sent:t:{mallory.id}", count)

    await mallory.say(group, f"{US} and another one")
    await rig.bot.wait_for_log("mailbox full")
    assert (await rig.ask(ben, group, f"{US} hello")).text == "All right."
    assert "?" in (await rig.ask(anna, group, "/clear")).text
    for person in (ben, mallory):
        assert (await rig.ask(person, group, "/forget")).text == sentence("forget.ask")
