"""Usage is counted by day and person, and costs are exact decimals."""

import asyncio
from collections.abc import Iterable
from decimal import Decimal
from time import time
from typing import Any

import pytest

from bot.costs import Prices, UsageRecorder, billed_to
from bot.model.call import CallReport, Usage
from config.values import Price
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
from tests.memory.clients import full_redis

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


async def test_sounds_have_units_of_their_own_and_are_in_no_sum_of_tokens(memory: Memory) -> None:
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


async def test_the_call_of_a_reply_never_stored_is_counted_at_the_end(memory: Memory) -> None:
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

    monkeypatch.setattr("bot.costs._PAUSE_S", 0)
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
    async with full_redis(memory.client), (recorder := UsageRecorder()).writing(memory.usage):
        note(recorder, ANSWER, Usage(5))
        note(recorder, EMBEDDING, Usage(3))
    assert await memory.usage.sums(time()) == {EMBEDDING: Tokens(3), ANSWER: Tokens(5)}


PRICES = Prices(
    [
        Price("main", Decimal(1), Decimal("0.5"), Decimal(2)),
        Price("memory", Decimal("0.2"), Decimal("0.1"), Decimal("0.8")),
        Price("ear", Decimal("0.006"), unit="min"),
        Price("mouth", Decimal(15), unit="Mchar"),
        Price("throat", Decimal("0.015"), unit="kchar"),
        Price("brush", Decimal("0.04"), unit="image"),
    ]
)
MAIN, MEMORY, FREE = (
    BillingSource("answer", "main"),
    BillingSource("internal", "memory"),
    BillingSource("answer", "own"),
)


def test_each_kind_of_token_has_its_price() -> None:
    sums = {MAIN: Tokens(1_000_000, 100_000, 10_000, 9_000), MEMORY: Tokens(3, 0, 1)}
    assert PRICES.cost(sums) == Decimal("1.07") + Decimal("0.0000014")


def test_a_million_small_calls_cost_as_much_as_one_large_call() -> None:
    one = PRICES.cost({MEMORY: Tokens(fresh=1)})
    assert one * 1_000_000 == PRICES.cost({MEMORY: Tokens(fresh=1_000_000)})


def test_a_model_without_a_price_costs_nothing_and_is_listed() -> None:
    sums = {MAIN: Tokens(fresh=1), FREE: Tokens(fresh=1)}
    assert PRICES.cost({FREE: Tokens(fresh=1)}) == 0
    assert PRICES.missing(sums) == ("own",)


def test_sounds_cost_by_the_minute_and_speech_by_the_character() -> None:
    assert PRICES.cost({BillingSource(HEARD, "ear"): Tokens(reasoning=90)}) == Decimal("0.009")
    for model in ("mouth", "throat"):
        sums = {BillingSource(SPOKEN, model): Tokens(reasoning=2_000)}
        assert PRICES.cost(sums) == Decimal("0.03")
        assert PRICES.missing(sums) == ()


def test_sounds_and_images_cost_by_tokens_or_by_their_unit_but_not_both() -> None:
    for kind, model, cost in (
        (HEARD, "ear", "0.006"),
        (HEARD, "main", "0.00002"),
        (DRAWN, "brush", "2.4"),
        (DRAWN, "main", "0.00002"),
    ):
        sums = {
            BillingSource("of its tokens", model): Tokens(fresh=14, output=3),
            BillingSource(kind, model): Tokens(reasoning=60),
        }
        assert PRICES.cost(sums) == Decimal(cost)
        assert PRICES.missing(sums) == ()
    only_seconds = {BillingSource(HEARD, "main"): Tokens(reasoning=60)}
    assert PRICES.cost(only_seconds) == 0
    assert PRICES.missing(only_seconds) == ("main",)
