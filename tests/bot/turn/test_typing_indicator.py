"""Typing is shown during the slow steps of a turn, which share one deadline."""

import asyncio

import pytest

from bot.telegram.chat import Destination
from bot.turn.answer import TypingIndicator
from tests.bot.turn.test_follow_ups import request_of
from tests.lab.simulator.loop import VirtualLoop
from tests.quiet_chat import QuietChat


class TypingChat(QuietChat):
    def __init__(self) -> None:
        super().__init__()
        self.typed: list[tuple[Destination, float]] = []

    async def show_typing(self, to: Destination) -> None:
        self.typed.append((to, asyncio.get_running_loop().time()))


async def test_a_later_step_gets_only_what_an_earlier_one_has_left() -> None:
    asked, at_work = request_of("Hello"), TypingIndicator(QuietChat(), timeout_s=100)
    async with at_work.shown(asked):
        ends_at = asked.run.ends_at
    async with at_work.shown(asked):
        assert asked.run.ends_at == ends_at
    asked.run.ends_at = asyncio.get_running_loop().time()
    with pytest.raises(TimeoutError):
        async with at_work.shown(asked):
            await asyncio.Event().wait()
    async with at_work.shown(request_of("Hello")):  # another turn has its own
        await asyncio.sleep(0)


def test_typing_is_shown_again_before_telegram_ends_it_after_five_seconds() -> None:
    async def answer() -> None:
        async with TypingIndicator(chat, timeout_s=100).shown(asked):
            await asyncio.sleep(14)

    chat, asked = TypingChat(), request_of("Hello")
    VirtualLoop.play(answer())
    assert chat.typed == [(asked.to, at) for at in (0, 4.5, 9, 13.5)]
