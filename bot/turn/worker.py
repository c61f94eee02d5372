"""The turn worker: reads wake-ups and has them served, a bounded number at once.

One conversation is worked on by one worker at a time; conversations do not wait for each other.
"""

import asyncio
from contextlib import suppress
from typing import NoReturn

import structlog

from bot.turn.conversation_worker import RENEWALS, ConversationWorker
from memory.queue.ready_queue import ReadyQueue, WakeUp
from memory.store.errors import StoreError
from memory.store.tasks import end_tasks

log = structlog.get_logger(__name__)

_MAX_BLOCK_S = 2.0
_PAUSE_S = 0.5
_RECLAIM_AFTER = 1.5
"""A wake-up is taken from a silent worker after this many leases.

The lease of that worker is over by then, although it may have been extended up to a third of a
lease after the wake-up.
"""


class TurnWorker:
    """Serves at most `max_turns` wake-ups at once until it is stopped."""

    def __init__(
        self, ready_queue: ReadyQueue, conversations: ConversationWorker, max_turns: int
    ) -> None:
        self._ready_queue = ready_queue
        self._conversations = conversations
        self._max_turns = max_turns
        self._renew_every_s = conversations.lease_s / RENEWALS
        self._reclaim_after_ms = int(conversations.lease_s * _RECLAIM_AFTER * 1000)
        self._block_ms = int(min(_MAX_BLOCK_S, self._renew_every_s) * 1000)
        self._serving: set[asyncio.Task[None]] = set()
        self._last_reclaim = 0.0

    async def run(self) -> None:
        """Read wake-ups, never more than there are free slots, until cancelled."""
        listening = asyncio.create_task(self._conversations.listen())
        try:
            await self._keep_reading()
        finally:
            await end_tasks([listening])

    async def stop(self, grace_s: float) -> None:
        """Let running turns finish within `grace_s`; hand over the rest. Cancel `run` before."""
        self._conversations.is_stopping = True
        if self._serving:
            await asyncio.wait(self._serving, timeout=grace_s)
        await end_tasks(self._serving)

    async def _keep_reading(self) -> NoReturn:
        while True:
            free = self._max_turns - len(self._serving)
            if free <= 0:
                await asyncio.wait(self._serving, return_when=asyncio.FIRST_COMPLETED)
                continue
            for wake_up in await self._read(free):
                task = asyncio.create_task(self._serve(wake_up), name=f"turn {wake_up.tag}")
                self._serving.add(task)
                task.add_done_callback(self._serving.discard)

    async def _read(self, max_count: int) -> list[WakeUp]:
        """Wait for wake-ups, those of silent workers first; return none after a while."""
        try:
            return await self._reclaim(max_count) or await self._ready_queue.read(
                max_count, self._block_ms
            )
        except StoreError as error:
            log.warning("store unavailable", reason=type(error).__name__, detail=str(error))
        except Exception:  # the outer fence: a worker that reads no wake-ups is worse
            log.exception("wake-ups not read")
        await asyncio.sleep(_PAUSE_S)
        return []

    async def _reclaim(self, max_count: int) -> list[WakeUp]:
        now = asyncio.get_running_loop().time()
        if now - self._last_reclaim < self._renew_every_s:
            return []
        self._last_reclaim = now
        return await self._ready_queue.reclaim(max_count, self._reclaim_after_ms)

    async def _serve(self, wake_up: WakeUp) -> None:
        """Serve one wake-up; if anything goes wrong, messages and wake-up stay."""
        renewing = asyncio.create_task(self._keep_renewing(wake_up))
        with structlog.contextvars.bound_contextvars(conversation=wake_up.tag):
            try:
                ended = await self._conversations.serve(wake_up)
                if ended.why == "held":
                    # The wake-up of a dead holder brings us back. A holder that was paused may
                    # have lost its own.
                    await self._ready_queue.acknowledge_if_pending(wake_up, ended.wake_up)
                else:
                    await self._ready_queue.acknowledge(wake_up)
            except StoreError as error:
                log.warning("turn interrupted", reason=type(error).__name__)
            except Exception:
                log.exception("wake-up not served")
            finally:
                await end_tasks([renewing])

    async def _keep_renewing(self, wake_up: WakeUp) -> None:
        """Keep a wake-up from being reclaimed while it is served, over all the turns it takes."""
        is_ours = True
        while is_ours:
            await asyncio.sleep(self._renew_every_s)
            with suppress(StoreError):
                is_ours = await self._ready_queue.renew(wake_up)
