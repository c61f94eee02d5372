"""Works on one conversation: takes its lease, runs its turns, gives the lease back.

The lease decides. A turn whose lease is lost is ended at once, whatever it is doing; the worker
that holds the lease now begins it again.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from time import time
from typing import NoReturn

import structlog

from bot.turn.patience import Parked
from bot.turn.permits import Permits
from memory.queue.open_turn import Committed, Lease, Nothing, OpenTurn, Wait
from memory.queue.ready_queue import ReadyQueue, WakeUp
from memory.queue.turns import TurnStore
from memory.scopes.history import HistoryParts
from memory.store.errors import LeaseLost, StoreError
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

_PAUSE_S = 0.5
"""Pause after a turn that failed; it doubles with each failure."""
_DEFERRED_MS = 15_000
"""A deferred turn is tried again after this, though usually when another turn ends."""
RENEWALS = 3
"""How often a lease and its wake-up are renewed within the time of one lease."""

Next = OpenTurn | Wait | Nothing
RunTurn = Callable[[OpenTurn], Awaitable[Committed]]
"""Answers, delivers and commits one turn; raises `LeaseLost`, `Parked` or `StoreError`.

What it does after the commit may outlast the lease.
"""


class ConversationWorker:
    """Serves wake-ups; several at once, each of another conversation."""

    def __init__(
        self,
        ready_queue: ReadyQueue,
        queue: TurnStore,
        histories: HistoryParts,
        permits: Permits,
        run_turn: RunTurn,
    ) -> None:
        self.lease_s = queue.lease_s
        self.is_stopping = False
        self._ready_queue = ready_queue
        self._queue = queue
        self._histories = histories
        self._permits = permits
        self._run_turn = run_turn

    async def serve(self, wake_up: WakeUp) -> Nothing:
        """Run the turns of a conversation until there are no more; return why.

        A worker that is cancelled, or that is stopping, hands an open turn over.
        """
        conversation = Scope(wake_up.tag)
        pauses_s = (_PAUSE_S * 2**failures for failures in count())
        await asyncio.sleep(self._coalesce_s(wake_up))
        while True:
            step = await self._acquire(conversation, wake_up)
            try:
                while not isinstance(step, Nothing):
                    if self.is_stopping:
                        _stop()
                    if isinstance(step, Wait):
                        await asyncio.sleep(min(step.wait_ms / 1000, self.lease_s / 2))
                        step = await self._acquire(conversation, wake_up, step.token)
                    else:
                        step = await self._run(step)
            except asyncio.CancelledError:
                await self._hand_over(conversation, wake_up, step)
                raise
            if step.why == "failed":
                await asyncio.sleep(next(pauses_s))
            elif step.why != "lost":
                return step

    def _coalesce_s(self, wake_up: WakeUp) -> float:
        """Return how long to wait, so that messages sent in quick succession are answered together.

        It is an estimate, because the clocks of worker and server may differ. If it is too short,
        `acquire` says how long to wait.
        """
        if not wake_up.coalesces:
            return 0
        longest_s = self._queue.coalesce_s
        return min(max(wake_up.woken_at + longest_s - time(), 0), longest_s)

    async def _acquire(self, conversation: Scope, wake_up: WakeUp, token: str = "") -> Next:
        cursor = self._histories.cursor(conversation)
        return await self._queue.acquire(conversation, cursor, token, wake_up.delivery)

    async def _hand_over(self, conversation: Scope, wake_up: WakeUp, step: Next) -> None:
        """Give the lease back and wake another worker."""
        if isinstance(step, Nothing):
            return
        token = step.token if isinstance(step, Wait) else step.lease.token
        await self._queue.hand_over(conversation, token)
        await self._permits.wake(conversation)
        await self._ready_queue.acknowledge(wake_up)

    async def _run(self, opened: OpenTurn) -> Next:
        """Run a turn, unless its person has too many under way; return what comes next.

        A turn that fails is begun again; after too many failures it gives itself up.
        """
        conversation = opened.lease.conversation
        if not self._permits.take(opened):
            log.info("turn deferred", user=opened.entries[0].sender_id)
            await self._queue.defer(opened.lease, _DEFERRED_MS)
            return Nothing("deferred")
        with structlog.contextvars.bound_contextvars(turn=opened.id):
            try:
                async with self._lease_kept(opened):
                    return (await self._run_turn(opened)).then
            except LeaseLost:
                log.info("lease lost")
                self._histories.drop(conversation)
                # After an erasure the lease is still ours, and would keep us out as well.
                await self._queue.hand_over(conversation, opened.lease.token)
                return Nothing("lost")
            except Parked as parked:
                log.warning("turn parked", pause_s=parked.pause_s)
                return Nothing("parked")
            except StoreError:
                raise
            except Exception as error:  # noqa: BLE001 - the outer fence of a turn, which is logged
                try:
                    await self._queue.note_failure(opened, type(error).__name__)
                finally:
                    log.exception("turn failed", exc_info=error)
                return Nothing("failed")
            finally:
                await self._permits.end(conversation)

    @asynccontextmanager
    async def _lease_kept(self, opened: OpenTurn) -> AsyncIterator[None]:
        """Renew the lease while the block runs; end the block with `LeaseLost` once it is gone.

        A commit is not ended: it may take the lease with it, and its own answer counts.
        """
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a turn runs in a task")
        is_lost, cancellations = False, task.cancelling()

        async def keep() -> None:
            nonlocal is_lost
            try:
                await self._keep_renewing(opened.lease)
            except LeaseLost:
                is_lost = not opened.committing.is_set()
                if is_lost:
                    task.cancel()

        keeping = asyncio.create_task(keep())
        try:
            yield
        except BaseException:
            if is_lost and task.uncancel() <= cancellations:
                raise LeaseLost(opened.lease.conversation.tag) from None
            raise
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    async def _keep_renewing(self, lease: Lease) -> NoReturn:
        """Extend a lease again and again; raise `LeaseLost` once it is gone."""
        loop = asyncio.get_running_loop()
        renewed = loop.time()
        while True:
            await asyncio.sleep(self.lease_s / RENEWALS)
            try:
                await self._queue.renew(lease)
                renewed = loop.time()
            except StoreError:
                if loop.time() - renewed > self.lease_s:
                    raise LeaseLost(lease.conversation.tag) from None


def _stop() -> NoReturn:
    raise asyncio.CancelledError
