"""Watches over the Redis plan, in every process: has room made, opens and closes intake."""

import asyncio

import structlog

from bot.commands.notices import AdminNotices
from memory.limits.alerts import Level
from memory.limits.capacity import CapacityMonitor
from memory.store.errors import StoreError

log = structlog.get_logger(__name__)

_CALM_EVERY_S = 5.0
_TIGHT_EVERY_S = 2.0


class CapacityWatch:
    """Looks again and again, more often where it is tight."""

    def __init__(self, keeper: CapacityMonitor, notices: AdminNotices) -> None:
        self._keeper = keeper
        self._notices = notices
        self._level = Level.CALM

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            try:
                level = await self._keeper.tend(self._notices.tell)
            except StoreError as error:
                log.warning("plan not watched", reason=type(error).__name__)
            except Exception:  # the outer fence: the next look may pass
                log.exception("plan watch failed")
            else:
                if level is not self._level:
                    log.warning(
                        "redis plan", level=level.name.lower(), was=self._level.name.lower()
                    )
                self._level = level
            is_tight = self._level >= Level.FULL_SOON
            await asyncio.sleep(_TIGHT_EVERY_S if is_tight else _CALM_EVERY_S)
