"""A 👎 is looked for in the topics of its person, and a flood of them is not."""

from dataclasses import replace

from bot.features.why.feature import WhyCommand
from bot.telegram.updates import Sender, ThumbsDown
from memory.memory import Memory
from memory.message import Message
from tests.bot.features.services import services_of
from tests.memory.turns import ANN, BOB, GROUP, store

DISLIKE = ThumbsDown(1, -7, is_group=True, message_id=12, sender=Sender(ANN, "A"), sent_at=1)


async def test_six_thumbs_down_of_a_person_are_looked_for_in_half_a_minute(memory: Memory) -> None:
    question = Message(0, 0, "user", "Hello", 1.0, ANN, message_ids=(11,))
    await store(memory, [question, Message(0, 0, "assistant", "Hi", 1.0, message_ids=(12,))], GROUP)
    why = WhyCommand(services_of(memory))
    found = [
        await why.read_thumbs_down(replace(DISLIKE, update_id=number, sender=Sender(person, "A")))
        for person, number in [*((ANN, number) for number in range(8)), (ANN, 5), (BOB, 9)]
    ]
    assert [each is not None for each in found] == [*[True] * 6, False, False, True, False]
