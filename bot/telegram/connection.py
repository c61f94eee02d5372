"""The state of the connection to Telegram, and how failed calls are tried again.

The readiness page shows the state, so it holds no secrets and no text of people.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import structlog

from bot.telegram.bot_api import BotIdentity
from bot.telegram.errors import DeliveryError, FloodWait, NotAccepted, Refused, TelegramError

Pause = Callable[[float], Awaitable[object]]
"""Waits for so many seconds."""

_FIRST_S = 0.5
_LONGEST_S = 30.0

_Answer = TypeVar("_Answer")

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class TelegramHealth:
    """Written by setup, poller and webhook, read by the pages. Times are in Unix seconds."""

    clock: Callable[[], float] = time.time
    identity: BotIdentity | None = None
    webhook_set: bool = False
    last_update_at: float | None = None
    standby: bool = False  # another process polls
    last_error: str = ""  # class of the failure that is being retried
    webhook_error: str = ""  # Telegram's own text about its last failed delivery
    webhook_error_at: float | None = None

    def age(self, at: float | None) -> int | None:
        """Return the seconds since `at`, None if `at` is None."""
        return None if at is None else max(0, round(self.clock() - at))

    def account(self) -> BotIdentity:
        """Return our account; raise `NotAccepted` until Telegram has said who we are."""
        if self.identity is None:
            raise NotAccepted
        return self.identity


class Backoff:
    """Waits after failures of one step: longer each time, with jitter, one log line a kind."""

    def __init__(self, step: str, health: TelegramHealth, pause: Pause = asyncio.sleep) -> None:
        self._step = step
        self.health = health
        self.pause = pause
        self._failures = 0
        self._logged = ""

    async def wait(self, error: Exception) -> None:
        """Wait before the next try; the wait that a `FloodWait` asks for is added in full."""
        self.health.last_error = kind = type(error).__name__
        if kind != self._logged:
            # Only the texts of our own errors are known to hold no secret.
            is_ours = isinstance(error, TelegramError | DeliveryError)
            text = str(error) if is_ours else ""
            description = error.description if isinstance(error, Refused) else text
            log.warning(
                "telegram call failed", step=self._step, error=kind, description=description
            )
            self._logged = kind
        longest_s = min(_LONGEST_S, _FIRST_S * 2 ** min(self._failures, 10))
        self._failures += 1
        wait_s = random.uniform(longest_s / 2, longest_s)
        if isinstance(error, FloodWait):
            wait_s += error.retry_after_s
        await self.pause(wait_s)

    def succeeded(self) -> None:
        """Reset the waits; log it if calls had failed before."""
        if self._failures:
            log.info("telegram call succeeded again", step=self._step, failures=self._failures)
            self._failures = 0
            self._logged = self.health.last_error = ""

    async def retry(
        self, step: Callable[[], Awaitable[_Answer]], *final: type[TelegramError]
    ) -> _Answer:
        """Repeat `step` until it succeeds, and return its answer; raise a `final` error at once.

        Only for steps that may be done twice.
        """
        while True:
            try:
                answer = await step()
            except final:
                raise
            except TelegramError as error:
                await self.wait(error)
            else:
                self.succeeded()
                return answer
