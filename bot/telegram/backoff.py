"""Waiting after failures: longer each time, never in step with others, one log line a kind."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import structlog

from bot.telegram.errors import DeliveryError, FloodWait, Refused, TelegramError
from bot.telegram.health import TelegramHealth

Pause = Callable[[float], Awaitable[object]]

_FIRST_S = 0.5
_LONGEST_S = 30.0

log = structlog.get_logger(__name__)


class Backoff:
    """Waits out a streak of failures of one kind of work, named `work` in the log."""

    def __init__(self, work: str, health: TelegramHealth, pause: Pause = asyncio.sleep) -> None:
        self._work = work
        self._health = health
        self._pause = pause
        self._failures = 0
        self._logged = ""

    async def wait_out(self, error: Exception) -> None:
        """Wait before the next try; a flood's own wait is kept in full."""
        self._health.last_error = kind = type(error).__name__
        if kind != self._logged:
            # Texts of ours carry no secret; others' may.
            ours = str(error) if isinstance(error, TelegramError | DeliveryError) else ""
            description = error.description if isinstance(error, Refused) else ours
            log.warning("telegram trouble", work=self._work, error=kind, description=description)
            self._logged = kind
        longest_s = min(_LONGEST_S, _FIRST_S * 2 ** min(self._failures, 10))
        self._failures += 1
        wait_s = random.uniform(longest_s / 2, longest_s)
        if isinstance(error, FloodWait):
            wait_s += error.retry_after_s
        await self._pause(wait_s)

    def succeeded(self) -> None:
        """End the streak."""
        if self._failures:
            log.info("telegram trouble over", work=self._work, failures=self._failures)
            self._failures = 0
            self._logged = self._health.last_error = ""
