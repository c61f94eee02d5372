"""How long one part of a reply waits for Telegram before its turn is parked."""

import structlog

from bot.telegram.errors import FloodWait, Unreachable

log = structlog.get_logger(__name__)

MAX_FLOOD_WAIT_S = 20
"""A longer pause parks the turn, because a lease should not last that long."""
_UNREACHABLE_PAUSES_S = (0.5, 1, 2, 4)
_PARK_UNREACHABLE_S = 30


class Parked(Exception):
    """Raised when Telegram wants a longer pause than a lease should last."""

    def __init__(self, pause_s: float) -> None:
        super().__init__(f"parked for {pause_s:g} s")
        self.pause_s = pause_s


class Patience:
    """Says how long to pause after each failure of one part, until the turn must be parked."""

    def __init__(self) -> None:
        self._waited_s = 0.0
        self._pauses = iter(_UNREACHABLE_PAUSES_S)

    def pause_s(self, error: FloodWait | Unreachable) -> float:
        """Return the pause; raise `Parked` if it would be too long."""
        if isinstance(error, FloodWait):
            self._waited_s += error.retry_after_s
            if self._waited_s > MAX_FLOOD_WAIT_S:
                raise Parked(error.retry_after_s) from error
            return error.retry_after_s
        pause_s = next(self._pauses, None)
        if pause_s is None:
            raise Parked(_PARK_UNREACHABLE_S) from error
        log.info("telegram unreachable", pause_s=pause_s)
        return pause_s
