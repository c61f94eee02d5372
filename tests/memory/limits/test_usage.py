"""Tokens are counted once for each call, in all sums at once, and expire."""

from dataclasses import replace
from datetime import UTC, datetime
from time import time
from typing import NoReturn

import pytest

from memory.limits.usage import (
    NO_PERSON,
    BilledCall,
    BillingSource,
    Tokens,
    expires_at,
    month_of,
    together,
)
from memory.memory import Memory
from memory.store.errors import StoreUnavailable
from memory.store.keys import Scope
from tests.memory.turns import ANN, BOB, HERE, begin

ANSWER, SPARE = BillingSource("answer", "main"), BillingSource("answer", "spare", is_second=True)
LEARNING = BillingSource("internal", "memory")
GROUP = Scope("c:-5:0")
NOW = datetime.now(UTC)
AT = NOW.timestamp()


def call(source: BillingSource, tokens: Tokens, person: int, tag: str = GROUP.tag) -> BilledCall:
    return replace(BilledCall(source, tokens, person, tag), at=AT)


async def test_a_call_is_counted_in_every_sum(memory: Memory) -> None:
    calls = [
        call(ANSWER, Tokens(100, 60, 7, 3), ANN),
        call(SPARE, Tokens(10, 0, 1), ANN),
        call(LEARNING, Tokens(50, 0, 5), NO_PERSON),
        call(ANSWER, Tokens(1, 0, 1), BOB, "c:2:0"),
    ]
    await memory.usage.count(calls)
    month = await memory.usage.of_bot(AT, people=10)
    assert month.sums == {
        ANSWER: Tokens(101, 60, 8, 3),
        SPARE: Tokens(10, 0, 1),
        LEARNING: Tokens(50, 0, 5),
    }
    assert month.days == {NOW.day: month.sums}
    assert month.people == ((ANN, 178), (NO_PERSON, 55), (BOB, 2))
    assert await memory.usage.of_person(ANN, AT) == {
        NOW.day: {ANSWER: Tokens(100, 60, 7, 3), SPARE: Tokens(10, 0, 1)}
    }
    assert together(await memory.usage.of_conversation(GROUP, AT)).total == 178 + 55


async def test_a_call_that_is_counted_again_counts_once(memory: Memory) -> None:
    twice = call(ANSWER, Tokens(5, 0, 5), ANN)
    await memory.usage.count([twice, twice])
    await memory.usage.count([twice])
    assert together(await memory.usage.sums(AT)).total == 10


async def test_days_are_kept_apart_and_months_too(memory: Memory) -> None:
    one = datetime(datetime.now(UTC).year + 1, 11, 3, 23, 59, tzinfo=UTC).timestamp()
    for at in (one, one + 120, one + 30 * 86_400):
        await memory.usage.count([replace(call(ANSWER, Tokens(1), ANN), at=at)])
    assert list((await memory.usage.of_bot(one, 10)).days) == [3, 4]
    assert list(await memory.usage.of_person(ANN, one + 30 * 86_400)) == [3]


@pytest.mark.parametrize(
    ("month", "day"),
    [("2026-10", (2027, 1, 1)), ("2026-11", (2027, 2, 1)), ("2026-12", (2027, 3, 1))],
)
def test_a_month_expires_two_months_after_it_ends(month: str, day: tuple[int, int, int]) -> None:
    assert expires_at(month) == datetime(*day, tzinfo=UTC).timestamp()


async def test_every_key_expires(memory: Memory) -> None:
    await memory.usage.count([call(ANSWER, Tokens(5, 0, 5), ANN)])
    client = memory.client
    ends = {key: await client.call("EXPIRETIME", key) for key in await client.call("KEYS", "*")}
    assert len(ends) == 5
    of_month = {key: end for key, end in ends.items() if month_of(AT).encode() in key}
    assert list(of_month.values()) == [expires_at(month_of(AT))] * 4
    assert all(AT < end < AT + 3 * 86_400 for key, end in ends.items() if key not in of_month)


async def test_tokens_of_a_forgotten_person_stay_in_the_totals(memory: Memory) -> None:
    own = Scope.of_chat(ANN)
    at = time()  # quotas count for today, and the suite may have begun yesterday
    calls = (
        call(ANSWER, Tokens(5, 0, 5), ANN, own.tag),
        call(ANSWER, Tokens(1), BOB),
        call(LEARNING, Tokens(2), NO_PERSON),
    )
    noted, *counted = (replace(each, at=at) for each in calls)
    await memory.usage.count(counted, [noted])
    before = await memory.usage.sums(at)
    for _ in range(2):
        await memory.usage.forget(ANN, [own])
        await memory.usage.count(memory.usage.release())  # what this process has held since
    after = await memory.usage.of_bot(at, 10)
    assert (after.sums, list(after.days.values())) == (before, [before])
    assert after.people == ((NO_PERSON, 12), (BOB, 1))
    assert await memory.usage.of_person(ANN, at) == {}
    assert await memory.usage.of_conversation(own, at) == {}
    assert await memory.quotas.spent_today(ANN) == 10


async def test_a_held_call_is_counted_once_with_the_reply(memory: Memory) -> None:
    turn = await begin(memory, 1)
    await memory.usage.count([], [call(LEARNING, Tokens(3), ANN, HERE.tag)])
    await memory.usage.count_noted()  # as another process does for somebody who looks at the sums
    for _ in range(3):  # so many that their ids are all that is remembered
        await memory.usage.count(call(SPARE, Tokens(1), ANN, HERE.tag) for _ in range(20))
    await memory.usage.count([], [call(LEARNING, Tokens(4), ANN, HERE.tag)])
    memory.usage.hold(call(ANSWER, Tokens(2), ANN, HERE.tag))
    memory.usage.hold(call(ANSWER, Tokens(7), ANN, GROUP.tag))
    trips = memory.client.round_trips
    await memory.turns.write_outbox(turn, b"reply")
    if memory.client.is_cluster:
        await memory.usage.count(memory.usage.release(HERE.tag))
    else:
        assert memory.client.round_trips == trips + 1
    assert together(await memory.usage.sums(AT)).total == 3 + 60 + 4 + 2
    assert memory.usage.release(HERE.tag) == []
    assert [each.tokens.total for each in memory.usage.release(GROUP.tag)] == [7]


MONTH, DAY = month_of(AT), int(AT) // 86_400


@pytest.mark.parametrize(
    ("names", "field"),
    [
        ((MONTH, "days"), f"{NOW.day}|{ANSWER}"),
        ((MONTH, "people"), ""),
        ((MONTH, f"u:{ANN}"), ""),
        (("spent", DAY, ANN), "sum"),
    ],
)
async def test_damaged_sums_hold_up_no_reply(
    memory: Memory, names: tuple[str | int, ...], field: str
) -> None:
    """They may be those of the whole bot, so every reply would wait for the end of its lease."""
    turn, key = await begin(memory, 1), memory.keys.usage(*names)
    await memory.client.call(*(("HSET", key, field) if field else ("SET", key)), "damaged")
    memory.usage.hold(call(ANSWER, Tokens(5), ANN, HERE.tag))
    await memory.turns.write_outbox(turn, b"reply")
    await memory.usage.count(memory.usage.release(HERE.tag))  # a Cluster counts it apart


async def test_a_call_is_held_again_when_the_reply_could_not_be_written(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: object) -> NoReturn:
        raise StoreUnavailable

    turn = await begin(memory, 1)
    memory.usage.hold(call(ANSWER, Tokens(5), ANN, HERE.tag))
    monkeypatch.setattr(memory.client, "pipeline", fail)
    with pytest.raises(StoreUnavailable):
        await memory.turns.write_outbox(turn, b"reply")
    assert len(memory.usage.release(HERE.tag)) == 1
