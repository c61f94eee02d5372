"""What is known of the way to Telegram, for the readiness page; no secrets, nobody's words."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from bot.telegram.values import BotIdentity


@dataclass(slots=True)
class TelegramHealth:
    """Written by set-up, poller and webhook, read by the pages; times are Unix seconds.

    `last_error` is the class name of the failure that is being waited out, "" when all is well;
    `standby` is true while another process polls. `webhook_error` is what Telegram last met when it
    delivered here, in its own words.
    """

    clock: Callable[[], float] = time.time
    identity: BotIdentity | None = None
    webhook_set: bool = False
    last_poll_at: float | None = None
    last_update_at: float | None = None
    standby: bool = False
    last_error: str = ""
    unreadable_updates: int = 0
    webhook_error: str = ""
    webhook_error_at: float | None = None

    def age(self, at: float | None) -> int | None:
        """Return the seconds since `at`, nothing when that never was."""
        return None if at is None else max(0, round(self.clock() - at))

    def polled(self) -> None:
        """Note that Telegram answered a poll."""
        self.last_poll_at = self.clock()

    def updated(self) -> None:
        """Note that an update arrived and was taken."""
        self.last_update_at = self.clock()
