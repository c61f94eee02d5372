"""The operator may look at a conversation for an hour, until it is taken back or erased."""

import time
from collections.abc import Awaitable, Callable

import pytest

from bot.features.inspector.operator_look import LOOK_S, OperatorLook
from memory.memory import Memory
from memory.queue.mailbox import Entry
from memory.store.keys import Scope
from tests.bot.features.services import services_of
from tests.lab.simulated_time import SimulatedClock
from tests.memory.turns import ANN, GROUP, HERE, clear, erase_all, forget_ann


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock(time.time())


@pytest.fixture
def look(memory: Memory, clock: SimulatedClock) -> OperatorLook:
    services = services_of(memory)
    return OperatorLook(memory, services.access, services.sentences, clock)


async def test_the_permission_for_one_conversation_lasts_an_hour(
    look: OperatorLook, clock: SimulatedClock
) -> None:
    assert await look.until(HERE) == 0
    await look.allow(HERE, 1)
    until = await look.until(HERE)
    assert until == pytest.approx(clock.now + LOOK_S, abs=0.01)
    assert await look.allowed() == [(HERE, until)]
    assert await look.until(Scope.of_chat(ANN, 3)) == 0
    clock.now += LOOK_S - 1
    assert await look.until(HERE) == until
    clock.now += 2
    assert (await look.until(HERE), await look.allowed()) == (0, [])


async def test_what_is_taken_back_is_over_whatever_is_pressed_again(
    memory: Memory, look: OperatorLook
) -> None:
    await look.allow(HERE, 1)
    await look.end(HERE, 2)
    assert (await look.until(HERE), await look.allowed()) == (0, [])
    await look.allow(HERE, 1)
    assert (await look.until(HERE), await look.allowed()) == (0, [])
    await look.allow(HERE, 3)
    assert await look.until(HERE) > 0
    await look.end(HERE, 4)
    # After a week without updates they have other numbers.
    await memory.client.call("HINCRBY", memory.keys.scope(HERE).meta, "look_at", -8 * 86_400_000)
    await look.allow(HERE, 1)
    assert await look.until(HERE) > 0


@pytest.mark.parametrize(
    ("conversation", "erase"),
    [(HERE, clear), (HERE, forget_ann), (GROUP, forget_ann), (HERE, erase_all), (GROUP, erase_all)],
)
async def test_an_erasure_of_the_chat_or_of_a_person_in_it_ends_the_permission_for_good(
    memory: Memory,
    look: OperatorLook,
    conversation: Scope,
    erase: Callable[[Memory], Awaitable[None]],
) -> None:
    await memory.mailbox.put(conversation, Entry(1, ANN, is_alone=False, body=b"hello"))
    await look.allow(conversation, 5)
    await erase(memory)
    assert await look.until(conversation) == 0
    assert await memory.client.call("EXISTS", memory.keys.looks) == 0
    await look.allow(conversation, 5)
    assert await look.until(conversation) == 0
