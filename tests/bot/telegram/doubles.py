"""Scripted implementations: pauses that end at once, a lease, mailboxes, a chat without a limit."""

import asyncio
import time
from collections.abc import Mapping

from bot.telegram.bot_api import TelegramClient
from bot.telegram.errors import IntakeClosed
from bot.telegram.rate_limit import SendRateLimiter, SendRates
from bot.telegram.telegram_chat import TelegramChat
from memory.store.client import RedisClient
from memory.store.keys import Keys
from memory.store.store import NamedLease, Scripts, Store
from tests.lab.simulator.client import DirectClient


class Pauses:
    """Ends each pause at once and keeps its length."""

    def __init__(self) -> None:
        self.taken_s: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken_s.append(seconds)
        await asyncio.sleep(0)


class ScriptedLease(NamedLease):
    """Refuses `refusals` times, then is held; `held_again` is set when it is extended."""

    def __init__(self, refusals: int = 0, ttl_ms: int = 60_000) -> None:
        super().__init__(Scripts(DirectClient(time.time)), "poller", ttl_ms)
        self.refusals = refusals
        self.held_again = asyncio.Event()

    async def hold(self) -> bool:
        self.refusals -= 1
        if self.refusals < -1:
            self.held_again.set()
        return self.refusals < 0


class Mailbox:
    """Raises each of `failures` once, then accepts updates."""

    def __init__(self, *failures: Exception) -> None:
        self.taken: list[Mapping[str, object]] = []
        self.failures = list(failures)

    @property
    def ids(self) -> list[object]:
        return [raw["update_id"] for raw in self.taken]

    async def accept(self, raw: Mapping[str, object], **_: bool) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.taken.append(raw)


class ClosedMailbox:
    """Accepts only the updates of these ids until it is opened, then all in their order."""

    def __init__(self, *commands: int) -> None:
        self.ids: list[object] = []
        self.commands = commands
        self.is_open = False

    async def accept(self, raw: Mapping[str, object], *, after_refusal: bool = False) -> None:
        if raw["update_id"] not in self.commands and (after_refusal or not self.is_open):
            raise IntakeClosed
        self.ids.append(raw["update_id"])


KEYS = Keys(42)


def send_rates_on(client: RedisClient) -> SendRates:
    """Return the limits that a bot keeps there."""
    return SendRates(Store(client, KEYS, Scripts(client), ttl_s=3600))


def unlimited_chat(client: TelegramClient) -> TelegramChat:
    """Return a chat port that has no rate limit."""
    return TelegramChat(client, SendRateLimiter(0, send_rates_on(DirectClient(time.time))))
