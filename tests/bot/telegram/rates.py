"""What the tests of rate limits share: limits kept on any client, and a chat without a limit."""

import time

from bot.telegram.bot_api import TelegramClient
from bot.telegram.rate_limit import SendRateLimiter
from bot.telegram.telegram_chat import TelegramChat
from memory.limits.quotas import SendRates
from memory.store.client import RedisClient
from memory.store.keys import Keys
from memory.store.store import Scripts, Store
from tests.lab.simulator.direct import DirectClient

KEYS = Keys(42)


def send_rates_on(client: RedisClient) -> SendRates:
    """Return the limits that a bot keeps there."""
    return SendRates(Store(client, KEYS, Scripts(client), ttl_s=3600))


def unlimited_chat(client: TelegramClient) -> TelegramChat:
    """Return a chat port that has no rate limit."""
    return TelegramChat(client, SendRateLimiter(0, send_rates_on(DirectClient(time.time))))
