"""Copies go out at half of the bot's rate."""

import pytest

from bot.features.broadcast.sending import HalfRate
from bot.reply.parts import Button
from bot.telegram.bot_api import TelegramClient
from bot.telegram.chat import CopiedMessage
from bot.telegram.errors import FloodWait
from bot.telegram.rate_limit import SendRateLimiter
from bot.telegram.telegram_chat import TelegramChat
from tests.bot.telegram.rates import send_rates_on
from tests.bot.telegram.scripted_api import ScriptedApi, refusal
from tests.lab.simulator.direct import DirectClient

MESSAGE = CopiedMessage(5, 70, Button("No announcements", "mute:"))


async def test_copies_wait_for_half_of_the_rate_and_for_the_ban_of_a_chat(
    client: TelegramClient, api: ScriptedApi
) -> None:
    now = [1_000.0]
    limiter = SendRateLimiter(10, send_rates_on(DirectClient(lambda: now[0])), lambda: now[0])
    chat = TelegramChat(client, limiter)
    permits = HalfRate(chat, 10, clock=lambda: now[0])
    waited = 0.0

    async def wait(chat_id: int) -> float:
        begun = now[0]
        async for wait_s in permits.waits(chat_id):
            now[0] += wait_s
        return now[0] - begun

    for chat_id in range(1, 21):
        waited += await wait(chat_id)
    assert waited == pytest.approx(19 / 5)
    api.script(refusal(429, "Too Many Requests: retry after 30", retry_after=30))
    with pytest.raises(FloodWait):
        await chat.copy(11, MESSAGE)
    with pytest.raises(FloodWait):
        await wait(11)
