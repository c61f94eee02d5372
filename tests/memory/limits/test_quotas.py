"""Quotas are counted for each person, once for each turn, and expire."""

from memory.limits.quotas import Quota, Verdict
from memory.limits.usage import HEARD, BilledCall, BillingSource, Tokens
from memory.memory import Memory
from tests.memory.turns import ANN, BOB, GROUP

TWO_A_MINUTE = Quota(turns=2)
HUNDRED_A_DAY = Quota(turns=0, tokens_per_day=100)


async def verdicts(memory: Memory, person: int, quota: Quota, *turns: str) -> list[Verdict]:
    return [await memory.quotas.admit(person, turn, quota) for turn in turns]


async def spend(memory: Memory, person: int, tokens: int, kind: str = "answer") -> None:
    """Count a call that used so many tokens."""
    call = BilledCall(BillingSource(kind, "m"), Tokens(fresh=tokens), person, f"c:{person}:0")
    await memory.usage.count([call])


async def test_turns_beyond_the_bound_are_refused_and_one_of_them_says_so(memory: Memory) -> None:
    assert await verdicts(memory, ANN, TWO_A_MINUTE, *"abcde") == [
        *(Verdict.ADMITTED, Verdict.ADMITTED),
        *(Verdict.TURNS, Verdict.SILENCED, Verdict.SILENCED),
    ]
    assert await verdicts(memory, BOB, TWO_A_MINUTE, "f") == [Verdict.ADMITTED]


async def test_a_turn_begun_again_counts_once_and_gets_the_same_verdict(memory: Memory) -> None:
    assert set(await verdicts(memory, ANN, TWO_A_MINUTE, *"aaaaa")) == {Verdict.ADMITTED}
    assert await verdicts(memory, ANN, TWO_A_MINUTE, *"bccdac") == [
        *(Verdict.ADMITTED, Verdict.TURNS, Verdict.TURNS),
        *(Verdict.SILENCED, Verdict.ADMITTED, Verdict.TURNS),
    ]


async def test_turns_are_admitted_again_after_a_minute(memory: Memory) -> None:
    await verdicts(memory, ANN, TWO_A_MINUTE, *"abc")
    turns, told = memory.keys.usage("turns", ANN), memory.keys.usage("refused", ANN)
    assert 60_000 < await memory.client.call("PTTL", turns) <= 3_600_000
    assert 0 < await memory.client.call("PTTL", told) <= 60_000
    await memory.client.call("ZINCRBY", turns, -60_001, "a")
    assert await verdicts(memory, ANN, TWO_A_MINUTE, *"de") == [Verdict.ADMITTED, Verdict.SILENCED]
    await memory.client.call("DEL", told)
    assert await verdicts(memory, ANN, TWO_A_MINUTE, "f") == [Verdict.TURNS]


async def test_only_tokens_of_answers_and_seconds_of_sound_count_for_the_quota(
    memory: Memory,
) -> None:
    for person, tokens, kind in (
        *((ANN, 40, "answer"), (ANN, 50, "answer"), (BOB, 10, "answer")),
        *((ANN, 1000, "internal"), (ANN, 1000, "embedding")),
    ):
        await spend(memory, person, tokens, kind)
    silence = BilledCall(BillingSource(HEARD, "m"), Tokens(reasoning=60), BOB, "c:-5:0")
    await memory.usage.count([silence])
    assert [await memory.quotas.spent_today(person) for person in (ANN, BOB)] == [90, 610]


async def test_a_person_without_tokens_is_told_once_but_a_begun_turn_ends(memory: Memory) -> None:
    assert await verdicts(memory, ANN, HUNDRED_A_DAY, "a") == [Verdict.ADMITTED]
    await spend(memory, ANN, 120)
    wanted = [Verdict.ADMITTED, Verdict.TOKENS, Verdict.TOKENS, Verdict.SILENCED]
    assert await verdicts(memory, ANN, HUNDRED_A_DAY, *"abbc") == wanted
    [key] = await memory.client.call("KEYS", "*:spent:*")
    assert 0 < await memory.client.call("TTL", key) <= 2 * 86_400


async def test_zero_means_no_bound(memory: Memory) -> None:
    await spend(memory, ANN, 10**9)
    assert set(await verdicts(memory, ANN, Quota(0, 0), *"abcdefgh")) == {Verdict.ADMITTED}


ASKS = "message"


async def used(memory: Memory, use: str, *names: str, sender: int = ANN) -> list[Verdict]:
    quotas = memory.quotas
    return [await quotas.admit_in_group(GROUP.chat_id, sender, name, use) for name in names]


async def test_a_member_gets_five_answers_in_half_a_minute_and_then_none_for_a_minute(
    memory: Memory,
) -> None:
    assert set(await used(memory, ASKS, *"abcdea")) == {Verdict.ADMITTED}
    assert await used(memory, ASKS, *"fgf") == [Verdict.TURNS, Verdict.SILENCED, Verdict.TURNS]
    turns, told = (memory.keys.usage(key, GROUP.chat_id, ANN) for key in ("turns", "refused"))
    for name in "abcde":
        await memory.client.call("ZINCRBY", turns, -30_001, name)
    assert await used(memory, ASKS, "h") == [Verdict.SILENCED]
    assert 30_000 < await memory.client.call("PTTL", f"{told}:message") <= 60_000
    await memory.client.call("DEL", f"{told}:message")
    assert await used(memory, ASKS, "h") == [Verdict.ADMITTED]


async def test_presses_count_and_leave_room_for_a_message(memory: Memory) -> None:
    assert await used(memory, "press", *"abcdef") == [
        *[Verdict.ADMITTED] * 4,
        *(Verdict.TURNS, Verdict.SILENCED),
    ]
    wanted = [Verdict.ADMITTED, Verdict.ADMITTED, Verdict.TURNS]
    assert await used(memory, ASKS, "a", "g", "h") == wanted


async def test_all_channels_that_write_in_a_group_are_one_member(memory: Memory) -> None:
    for sender, name in zip((-1, -2, -3, -4, -5), "abcde", strict=True):
        await used(memory, ASKS, name, sender=sender)
    assert await used(memory, ASKS, "f", sender=-6) == [Verdict.TURNS]
    for other in (BOB, GROUP.chat_id):  # a member, and the hidden admins
        assert await used(memory, ASKS, "g", sender=other) == [Verdict.ADMITTED]


async def test_all_counts_are_in_the_slot_of_usage(memory: Memory) -> None:
    await verdicts(memory, ANN, TWO_A_MINUTE, *"abc")
    await spend(memory, ANN, 1)
    keys = await memory.client.call("KEYS", "*")
    assert len(keys) == 6
    assert all(b"{usage}" in key for key in keys)


async def test_one_turn_a_day_is_the_first(memory: Memory) -> None:
    told = [await memory.quotas.is_first_today(ANN, turn, "budget") for turn in "abab"]
    assert told == [True, False, True, False]
    assert await memory.quotas.is_first_today(BOB, "b", "budget")


async def test_no_member_of_a_group_uses_up_what_edits_of_others_have_learned_again(
    memory: Memory,
) -> None:
    channels = (-1_001, -1_002)  # a person may own many, so they share one bound
    edits = [(ANN, 999), (ANN, 400), (ANN, 1), (BOB, 1), *((each, 1_000) for each in channels)]
    learns = [await memory.quotas.may_learn_again(GROUP, *edit) for edit in edits]
    assert learns == [True, True, False, True, True, False]
