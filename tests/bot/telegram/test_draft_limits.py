"""Drafts and "typing" keep to Telegram's limits, and stop where they are refused."""

import pytest

from bot.telegram.errors import BadToken, OutcomeUnknown, Refused, TelegramError
from bot.telegram.rate_limit import DraftLimits
from tests.lab.simulated_time import SimulatedClock

ANNA, BEN, GROUP = 1001, 1002, -100


def takes_drafts(limits: DraftLimits, chat_id: int) -> bool:
    return limits.accepts("sendMessageDraft", chat_id)


def test_a_private_chat_takes_twenty_calls_in_five_seconds_and_forty_in_thirty() -> None:
    clock = SimulatedClock()
    limits, taken = DraftLimits(clock), []
    for wait_s in (0, 5, 5, 20.5):
        clock.now += wait_s
        taken.append(sum(limits.take(ANNA) for _ in range(30)))
    assert taken == [20, 20, 0, 20]
    assert limits.take(BEN)
    assert all(limits.take(GROUP) for _ in range(50))


def test_a_flood_wait_leaves_calls_to_that_chat_out_until_it_is_over() -> None:
    clock = SimulatedClock()
    limits = DraftLimits(clock)
    limits.pause(ANNA, 3)
    assert (limits.take(ANNA), limits.take(BEN)) == (False, True)
    clock.now += 3
    assert limits.take(ANNA)


@pytest.mark.parametrize(
    ("error", "pause_s", "silent"),
    [
        (Refused("other"), 3600, [ANNA]),
        (BadToken("404"), 3600, [ANNA, BEN]),
        (OutcomeUnknown("timeout"), 30, [ANNA]),
    ],
)
def test_after_trouble_there_are_no_drafts_for_a_while(
    error: TelegramError, pause_s: float, silent: list[int]
) -> None:
    clock = SimulatedClock()
    limits = DraftLimits(clock)
    limits.failed("sendMessageDraft", ANNA, error)
    assert [chat for chat in (ANNA, BEN) if not takes_drafts(limits, chat)] == silent
    clock.now += pause_s
    assert takes_drafts(limits, ANNA)


def test_each_method_is_refused_for_itself() -> None:
    limits = DraftLimits(SimulatedClock())
    limits.failed("sendRichMessage", GROUP, Refused("other"))
    limits.failed("sendRichMessage", ANNA, BadToken("404"))
    assert not any(limits.accepts("sendRichMessage", chat) for chat in (ANNA, BEN, GROUP))
    assert takes_drafts(limits, ANNA)


def test_what_is_known_of_thousands_of_chats_stays_bounded() -> None:
    clock = SimulatedClock()
    limits = DraftLimits(clock)
    for chat_id in range(1, 20_000):
        clock.now += 0.001
        assert limits.take(chat_id)
    assert len(limits._calls) <= 4096
