"""Slow steps of a turn share one deadline, show typing, and try a download twice."""

import asyncio

import pytest

from bot.telegram.chat import Destination
from bot.telegram.errors import FloodWait, OutcomeUnknown, TelegramError, Unreachable
from bot.telegram.updates import SentFile
from bot.turn.answer import TypingIndicator, download
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


class FailingDownloads(QuietChat):
    """Fails with these errors, then gives a file."""

    def __init__(self, *errors: TelegramError) -> None:
        super().__init__()
        self.errors = [*errors]

    async def download(self, file_id: str, max_bytes: int) -> bytes:
        del file_id, max_bytes
        if self.errors:
            raise self.errors.pop()
        return b"file"


def test_a_download_that_fails_on_its_way_is_tried_once_more() -> None:
    async def fetch(*errors: TelegramError) -> bytes:
        return await download(FailingDownloads(*errors), SentFile("f", "a.txt", "", 4), 10)

    assert VirtualLoop.play(fetch(Unreachable())) == b"file"
    assert VirtualLoop.play(fetch(OutcomeUnknown())) == b"file"
    assert VirtualLoop.play(fetch(FloodWait(30))) == b"file"
    with pytest.raises(Unreachable):
        VirtualLoop.play(fetch(Unreachable(), Unreachable()))
    with pytest.raises(FloodWait):
        VirtualLoop.play(fetch(FloodWait(86_400)))
