"""Billed calls are counted in Redis, even if Redis is unavailable for a while."""

import asyncio
from collections.abc import Iterable

from bot.costs.usage_counter import UsageRecorder, billed_to
from bot.model.call import Usage
from memory.limits.billed import DRAWN, HEARD, SPOKEN, BilledCall, BillingSource, Tokens, together
from memory.limits.usage import NO_PERSON, UsageStore
from memory.memory import Memory
from memory.store.errors import StoreUnavailable
from memory.store.keys import Scope
from tests.memory.conftest import memory

__all__ = ["memory"]

ANSWER = BillingSource("answer", "m")
CHAT = Scope("c:7:0")


class LosesOneAnswer(UsageStore):
    """Counts the first calls, then fails as if the answer of Redis were lost."""

    failures = 1

    async def count(self, calls: Iterable[BilledCall]) -> None:
        await super().count(calls)
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable


async def test_a_call_is_counted_for_the_person_it_is_billed_to(memory: Memory) -> None:
    recorder = UsageRecorder()

    async def learn() -> None:
        recorder.note(ANSWER, Usage(10, 1))

    async with recorder.writing(memory.usage):
        with billed_to(CHAT, 7):
            recorder.note(ANSWER, Usage(100, 7, 60, 3))
            begun = asyncio.create_task(learn())
        await begun
        recorder.note(ANSWER, Usage(5))
    month = await memory.usage.of_bot(_now(), 10)
    assert month.sums == {ANSWER: Tokens(55, 60, 8, 3)}
    assert month.people == ((7, 118), (NO_PERSON, 5))


async def test_sounds_are_counted_in_units_of_their_own_and_in_no_sum_of_tokens(
    memory: Memory,
) -> None:
    ear, recorder = BillingSource("transcription", "ear"), UsageRecorder()
    async with recorder.writing(memory.usage):
        with billed_to(CHAT, 7):
            recorder.note(ear, Usage(14, 3, heard_s=20))
            recorder.note(ear, Usage(heard_s=40))
            recorder.note(BillingSource("speech", "mouth"), Usage(spoken_chars=500))
            recorder.note(BillingSource("drawing", "pen"), Usage(drawn_images=2))
    month = await memory.usage.of_bot(_now(), 10)
    assert month.sums == {
        ear: Tokens(14, 0, 3),
        BillingSource(HEARD, "ear"): Tokens(reasoning=60),
        BillingSource(SPOKEN, "mouth"): Tokens(reasoning=500),
        BillingSource(DRAWN, "pen"): Tokens(reasoning=2),
    }
    assert month.people == ((7, 17),)


async def test_a_call_without_billed_tokens_is_not_counted(memory: Memory) -> None:
    recorder = UsageRecorder()
    async with recorder.writing(memory.usage):
        recorder.note(ANSWER, Usage())
    assert await memory.client.call("DBSIZE") == 0


async def test_the_call_of_a_reply_that_was_never_stored_is_counted_at_the_end(
    memory: Memory,
) -> None:
    recorder, trips = UsageRecorder(), memory.client.round_trips
    async with recorder.writing(memory.usage):
        with billed_to(CHAT, 7):
            recorder.note(ANSWER, Usage(5), is_last=True)
        assert memory.client.round_trips == trips
    assert together(await memory.usage.sums(_now())).total == 5


async def test_a_write_whose_answer_was_lost_counts_only_once(memory: Memory) -> None:
    losing = LosesOneAnswer(memory.client, memory.keys, memory.scripts)
    recorder = UsageRecorder()
    async with recorder.writing(losing):
        recorder.note(ANSWER, Usage(5))
    assert losing.failures == 0
    assert together(await memory.usage.sums(_now())).total == 5


def _now() -> float:
    return BilledCall.now(ANSWER, Tokens(), 0, "").at
