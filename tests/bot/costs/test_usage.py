"""Billed calls are counted in Redis, even if Redis is unavailable for a while."""

import asyncio
from collections.abc import Iterable
from time import time
from typing import Any

import pytest

from bot.costs import UsageRecorder, billed_to
from bot.model.call import CallReport, Usage
from memory.limits.usage import (
    DRAWN,
    HEARD,
    NO_PERSON,
    SPOKEN,
    BilledCall,
    BillingSource,
    Tokens,
    together,
)
from memory.memory import Memory
from memory.store.errors import StoreUnavailable
from memory.store.keys import Scope
from tests.memory.conftest import memory

__all__ = ["memory"]

ANSWER, EMBEDDING = BillingSource("answer", "m"), BillingSource("embedding", "e")
CHAT = Scope("c:7:0")


def note(recorder: UsageRecorder, source: BillingSource, usage: Usage, **said: Any) -> None:
    kind: Any = source.kind
    recorder.model_called(CallReport(kind, source.model, "first", 1.0, usage, **said))


async def test_a_call_is_counted_for_the_person_it_is_billed_to(memory: Memory) -> None:
    recorder = UsageRecorder()

    async def learn() -> None:
        note(recorder, ANSWER, Usage(10, 1))

    async with recorder.writing(memory.usage):
        with billed_to(CHAT, 7):
            note(recorder, ANSWER, Usage(100, 7, 60, 3))
            begun = asyncio.create_task(learn())
        await begun
        note(recorder, ANSWER, Usage(5))
    month = await memory.usage.of_bot(time(), 10)
    assert month.sums == {ANSWER: Tokens(55, 60, 8, 3)}
    assert month.people == ((7, 118), (NO_PERSON, 5))


async def test_sounds_are_counted_in_units_of_their_own_and_in_no_sum_of_tokens(
    memory: Memory,
) -> None:
    ear, recorder = BillingSource("transcription", "ear"), UsageRecorder()
    async with recorder.writing(memory.usage):
        with billed_to(CHAT, 7):
            note(recorder, ear, Usage(14, 3, heard_s=20))
            note(recorder, ear, Usage(heard_s=40))
            note(recorder, BillingSource("speech", "mouth"), Usage(spoken_chars=500))
            note(recorder, BillingSource("drawing", "pen"), Usage(drawn_images=2))
            note(recorder, ANSWER, Usage())  # it was billed nothing
    month = await memory.usage.of_bot(time(), 10)
    assert month.sums == {
        ear: Tokens(14, 0, 3),
        BillingSource(HEARD, "ear"): Tokens(reasoning=60),
        BillingSource(SPOKEN, "mouth"): Tokens(reasoning=500),
        BillingSource(DRAWN, "pen"): Tokens(reasoning=2),
    }
    assert month.people == ((7, 17),)


async def test_the_call_of_a_reply_that_was_never_stored_is_counted_at_the_end(
    memory: Memory,
) -> None:
    recorder, trips = UsageRecorder(), memory.client.round_trips
    async with recorder.writing(memory.usage):
        with billed_to(CHAT, 7):
            note(recorder, ANSWER, Usage(5), is_reply=True)
        assert memory.client.round_trips == trips
    assert together(await memory.usage.sums(time())).total == 5


async def test_a_write_whose_answer_was_lost_counts_only_once(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, losses = memory.usage.count, iter([StoreUnavailable])

    async def lossy(*calls: Iterable[BilledCall]) -> None:
        await count(*calls)
        for each in losses:
            raise each

    monkeypatch.setattr(memory.usage, "count", lossy)
    async with (recorder := UsageRecorder()).writing(memory.usage):
        note(recorder, ANSWER, Usage(5))
    assert not list(losses)
    assert together(await memory.usage.sums(time())).total == 5


async def test_an_embedding_is_noted_and_counted_once_later(memory: Memory) -> None:
    """With the next call of its conversation, or when somebody asks for sums."""
    key = memory.keys.noted_calls
    async with (recorder := UsageRecorder()).writing(memory.usage):
        with billed_to(CHAT, 7):
            for source, noted in ((EMBEDDING, 1), (ANSWER, 0), (EMBEDDING, 1)):
                note(recorder, source, Usage(3))
                await recorder._waiting.join()
                await memory.usage.count_noted(60)
                assert await memory.client.call("EXISTS", key) == noted
            assert await memory.usage.sums(time()) == {EMBEDDING: Tokens(6), ANSWER: Tokens(3)}
            assert (await memory.usage.of_bot(time(), 10)).people == ((7, 9),)
            assert not await memory.client.call("EXISTS", key)
    assert together(await memory.usage.sums(time())).total == 9


async def test_a_full_redis_still_counts(memory: Memory) -> None:
    if memory.client.is_cluster:
        pytest.skip("one node is enough")
    await memory.client.call("CONFIG SET", "maxmemory", 1)
    try:
        async with (recorder := UsageRecorder()).writing(memory.usage):
            note(recorder, ANSWER, Usage(5))
            note(recorder, EMBEDDING, Usage(3))
    finally:
        await memory.client.call("CONFIG SET", "maxmemory", 0)
    assert await memory.usage.sums(time()) == {EMBEDDING: Tokens(3), ANSWER: Tokens(5)}
