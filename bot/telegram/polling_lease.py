"""The right to poll Telegram: one process has it, kept alive in the background while it polls."""

import asyncio

import structlog

from memory.memory import Memory
from memory.store.errors import StoreError

log = structlog.get_logger(__name__)


class PollingLease:
    """Held by renewing every third of its time; a dead holder's passes on after `lease_s`."""

    def __init__(self, memory: Memory, lease_s: float) -> None:
        self._lease = memory.poller_lease(int(lease_s * 1000))
        self._every_s = lease_s / 3
        self._renewing: asyncio.Task[None] | None = None

    async def hold(self) -> bool:
        """Take or extend the lease; false while another process has it, or Redis is away."""
        try:
            is_held = await self._lease.hold()
        except StoreError as error:
            log.warning("poll lease unavailable", reason=type(error).__name__)
            return False
        if is_held and self._renewing is None:
            self._renewing = asyncio.create_task(self._renew())
        return is_held

    async def release(self) -> None:
        """Stop renewing and let another process poll at once."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)
            self._renewing = None
        await self._lease.release()

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            try:
                await self._lease.hold()
            except StoreError:
                continue
