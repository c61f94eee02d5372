"""Many strangers at once: admins get few notices, and a waiting sentence holds up nobody."""

import tracemalloc

import pytest

from bot.features.access.strangers import Strangers
from bot.telegram.updates import IncomingMessage, Sender, Stranger
from memory.memory import Memory
from tests.bot.features.services import services_of
from tests.quiet_chat import QuietChat
from tests.settings import Settings

ADMIN, GROUP = 1, -5


def strangers_on(memory: Memory, **given: str) -> tuple[Strangers, QuietChat]:
    settings = Settings(admin_user_ids=str(ADMIN), **given)  # type: ignore[arg-type]
    return Strangers(services_of(memory, settings, chat := QuietChat())), chat


def message_of(sender: int, chat: int = 0, text: str = "hello", command: str = "") -> Stranger:
    author = Sender(sender, f"Person{sender}")
    where = chat or sender
    message = IncomingMessage(
        1, where, 0, where < 0, 1, 0, author, "command" if command else "text", text, command
    )
    return Stranger(1, message, "Club" if chat else "")


async def test_a_flood_of_strangers_gives_20_notices_an_hour_and_a_count(memory: Memory) -> None:
    strangers, chat = strangers_on(memory, access="ask")
    for number in range(130):
        assert await strangers.meet(message_of(1000 + number)) is None
    for _ in range(3):
        await strangers.tell_admins()
    assert len(chat.sent) == 21
    assert "100" in chat.sent[-1][1].text
    assert len(await strangers.access.list_asking()) == 100
    assert len(await strangers.access.list_asking(untold=True)) == 80


@pytest.mark.parametrize("access", ["open", "ask", "invite"])
async def test_a_stranger_may_see_and_erase_what_is_stored_of_them_in_each_mode(
    memory: Memory, access: str
) -> None:
    strangers, _ = strangers_on(memory, access=access, allowed_user_ids="2")
    asked = message_of(1000, text="words of mine", command="forget")
    assert await strangers.meet(asked) is None
    await strangers.access.ask_in(1001, "Anna", "en")
    answered = await strangers.meet(message_of(1001, text="words of mine", command="forget"))
    assert answered
    assert (answered.command, answered.text) == ("forget", "")


async def test_whether_somebody_is_in_takes_no_round_trip(memory: Memory) -> None:
    strangers, _ = strangers_on(memory, access="ask")
    await strangers.access.ask_in(1000, "Anna", "en")
    await strangers.access.decide(1000, ADMIN, "admit")
    round_trips = memory.client.round_trips
    assert await strangers.admission.admits(message_of(1000).message)
    assert memory.client.round_trips == round_trips
    assert not await strangers.admission.admits(message_of(1001).message)
    assert memory.client.round_trips == round_trips + 1


def test_whether_somebody_is_named_copies_no_list(memory: Memory) -> None:
    strangers, _ = strangers_on(memory, allowed_user_ids=",".join(map(str, range(1, 10_001))))
    tracemalloc.start()
    assert not strangers.admission.serves(20_000, 20_000)
    assert tracemalloc.get_traced_memory()[1] < 100_000  # a copy takes 500,000
    tracemalloc.stop()


async def test_a_group_is_left_unless_it_is_let_in_meanwhile(memory: Memory) -> None:
    strangers, _ = strangers_on(memory, allowed_group_ids="-9")
    assert await strangers.meet(message_of(1000, GROUP)) is None
    assert await strangers.meet(message_of(ADMIN, GROUP)) is None
    strangers, _ = strangers_on(memory, access="invite")
    assert await strangers.meet(message_of(1000, GROUP)) is None
    assert await strangers.meet(message_of(ADMIN, GROUP))
    assert await strangers.meet(message_of(1000, GROUP))


async def test_a_refused_person_is_not_served_in_a_group_that_is_in(memory: Memory) -> None:
    strangers, chat = strangers_on(memory, access="ask")
    await strangers.access.admit_group(GROUP, "Club", ADMIN)
    assert await strangers.meet(message_of(1000, GROUP))
    await strangers.access.ask_in(1000, "Anna", "en")
    await strangers.access.decide(1000, ADMIN, "refuse")
    assert await strangers.meet(message_of(1000, GROUP)) is None
    assert await strangers.meet(message_of(1001, GROUP))
    assert (chat.sent, chat.left) == ([], [])
