"""Copies go out at half of the bot's rate, each once, with a button."""

import json

import pytest

from bot.reply.parts import Button
from bot.telegram.bot_api import TelegramClient
from bot.telegram.copies import CopiedMessage, Copier
from bot.telegram.errors import FloodWait, Refused
from bot.telegram.rate_limit import SendRateLimiter
from bot.telegram.telegram_chat import TelegramChat
from tests.bot.telegram.rates import send_rates_on
from tests.bot.telegram.scripted_api import ScriptedApi, ok, refusal
from tests.lab.simulator.direct import DirectClient

MESSAGE = CopiedMessage(5, 70, Button("No announcements", "mute:"))


async def test_a_copy_names_its_source_and_carries_the_button(
    chat: TelegramChat, api: ScriptedApi
) -> None:
    api.script(ok({"message_id": 9}), refusal(400, "Bad Request: message can't be copied"))
    copier = Copier(chat, 0, 5)
    await copier.copy(MESSAGE, 11)
    sent = api.calls[0].parameters
    assert (sent["chat_id"], sent["from_chat_id"], sent["message_id"]) == ("11", "5", "70")
    [[button]] = json.loads(sent["reply_markup"])["inline_keyboard"]
    assert button == {"text": "No announcements", "callback_data": "mute:"}
    with pytest.raises(Refused, match="not_copied"):
        await copier.copy(MESSAGE, 12)


async def test_copies_wait_for_half_of_the_rate_and_for_the_ban_of_a_chat(
    client: TelegramClient, api: ScriptedApi
) -> None:
    now = [1_000.0]
    limiter = SendRateLimiter(10, send_rates_on(DirectClient(lambda: now[0])), lambda: now[0])
    copier = Copier(TelegramChat(client, limiter), 10, 5, clock=lambda: now[0])
    waited = 0.0

    async def wait(chat_id: int) -> float:
        begun = now[0]
        async for wait_s in copier.waits(chat_id):
            now[0] += wait_s
        return now[0] - begun

    for chat_id in range(1, 21):
        waited += await wait(chat_id)
    assert waited == pytest.approx(19 / 5)
    api.script(refusal(429, "Too Many Requests: retry after 30", retry_after=30))
    with pytest.raises(FloodWait):
        await copier.copy(MESSAGE, 11)
    with pytest.raises(FloodWait):
        await wait(11)
