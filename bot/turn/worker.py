"""The turn worker: hears bells, holds leases, has turns run; a bounded number at once.

One conversation is worked on by one worker at a time; conversations do not wait for each other.
What a turn does is `runner`'s business.
"""

import asyncio
from contextlib import suppress
from itertools import count
from time import time
from typing import Any, NoReturn, Protocol

import structlog

from bot.turn.deliver import Parked
from bot.turn.permits import Permits
from memory.memory import Memory
from memory.queue.open_turn import Committed, Lease, LeaseLost, Nothing, OpenTurn, Wait
from memory.queue.ready_queue import ReadyQueue, WakeUp
from memory.store.errors import StoreError
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

_LONGEST_BLOCK_S = 1.0
_PAUSE_S = 0.5
_DEFERRED_MS = 15_000
"""After this a deferred turn is tried again, though it mostly is when another one ends."""
_RENEWALS = 3
"""How often a lease and its bell are renewed within the time of one lease."""

_RECLAIM_AFTER = 1.5
"""Leases that a bell must have been silent for: its holder's own is over by then, although that was
extended up to a third of a lease after the bell."""

Next = OpenTurn | Wait | Nothing


class Runner(Protocol):
    """Answers one turn."""

    async def run(self, turn: OpenTurn) -> Committed:
        """Answer, deliver and commit; what is done after that may outlast the lease.

        Raise `LeaseLost`, `Parked` or `StoreError`.
        """
        ...


class TurnWorker:
    """Serves bells until it is stopped."""

    def __init__(
        self, memory: Memory, runner: Runner, permits: Permits, *, most: int, lease_s: float
    ) -> None:
        self._memory = memory
        self._runner = runner
        self._permits = permits
        self._most = most
        self._lease_s = lease_s
        self._block_ms = int(min(_LONGEST_BLOCK_S, lease_s / _RENEWALS) * 1000)
        self._ready_queue: ReadyQueue = memory.ready_queue()
        self._serving: set[asyncio.Task[None]] = set()
        self._last_reclaim = 0.0
        self._is_stopping = False

    async def run(self) -> None:
        """Hear bells, never more than there are free places, until cancelled."""
        while True:
            free = self._most - len(self._serving)
            if free <= 0:
                await asyncio.wait(self._serving, return_when=asyncio.FIRST_COMPLETED)
                continue
            for wake_up in await self._hear(free):
                task = asyncio.create_task(self._serve(wake_up), name=f"turn {wake_up.tag}")
                self._serving.add(task)
                task.add_done_callback(self._serving.discard)

    async def stop(self, grace_s: float) -> None:
        """Let running turns finish within `grace_s`; hand over the rest. Cancel `run` before."""
        self._is_stopping = True
        if self._serving:
            await asyncio.wait(self._serving, timeout=grace_s)
        serving = list(self._serving)
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    async def _hear(self, most: int) -> list[WakeUp]:
        """Wait for bells, silent workers' first; none when nothing rings for a while."""
        try:
            return await self._reclaim(most) or await self._ready_queue.read(most, self._block_ms)
        except StoreError as error:
            log.warning("store unavailable", reason=type(error).__name__)
        except Exception:  # the outer fence: a deaf bot is worse
            log.exception("no bell heard")
        await asyncio.sleep(_PAUSE_S)
        return []

    async def _reclaim(self, most: int) -> list[WakeUp]:
        now = asyncio.get_running_loop().time()
        if now - self._last_reclaim < self._lease_s / _RENEWALS:
            return []
        self._last_reclaim = now
        return await self._ready_queue.reclaim(most, int(self._lease_s * _RECLAIM_AFTER * 1000))

    async def _serve(self, wake_up: WakeUp) -> None:
        """Serve one bell to its end; whatever goes wrong, the mail stays and so does the bell."""
        conversation = Scope(wake_up.tag)
        renewing = asyncio.create_task(self._keep_wake_up(wake_up))
        with structlog.contextvars.bound_contextvars(conversation=wake_up.tag):
            try:
                ended = await self._serve_conversation(conversation, wake_up)
                if ended.why == "held":
                    # A dead holder's bell brings us back; one that slept may have lost its own.
                    await self._ready_queue.acknowledge_if_pending(wake_up, ended.wake_up)
                else:
                    await self._ready_queue.acknowledge(wake_up)
            except StoreError as error:
                log.warning("turn interrupted", reason=type(error).__name__)
            except Exception:
                log.exception("turn failed")
            finally:
                await _end(renewing)

    async def _serve_conversation(self, conversation: Scope, wake_up: WakeUp) -> Nothing:
        """Run turns while there are any; say why there are no more."""
        pauses_s = (_PAUSE_S * 2**failures for failures in count())
        await asyncio.sleep(self._gathering_s(wake_up))
        while True:
            result = await self._acquire(conversation, wake_up)
            while not isinstance(result, Nothing):
                result = await self._advance(conversation, wake_up, result)
            if result.why == "failed":
                await asyncio.sleep(next(pauses_s))
            elif result.why != "lost":
                return result

    def _gathering_s(self, wake_up: WakeUp) -> float:
        """Return how long a message that has just rung is not answered: to ask sooner is in vain.

        By clocks that may differ; asked too soon, the store says how long it still is.
        """
        if not wake_up.coalesces:
            return 0
        longest_s = self._memory.turns.coalesce_s
        return min(max(wake_up.woken_at + longest_s - time(), 0), longest_s)

    async def _acquire(self, conversation: Scope, wake_up: WakeUp, token: str = "") -> Next:
        known = self._memory.cursor(conversation)
        return await self._memory.turns.acquire(conversation, known, token, wake_up.delivery)

    async def _advance(self, conversation: Scope, wake_up: WakeUp, result: OpenTurn | Wait) -> Next:
        """Wait for a fresh message to settle, or run the turn; a cancelled holder hands over."""
        token = result.token if isinstance(result, Wait) else result.lease.token
        try:
            if self._is_stopping:
                _give_up()
            if isinstance(result, Wait):
                await asyncio.sleep(min(result.wait_ms / 1000, self._lease_s / 2))
                return await self._acquire(conversation, wake_up, token)
            with structlog.contextvars.bound_contextvars(turn=result.id):
                return await self._run_or_defer(result)
        except LeaseLost:
            log.info("lease lost")
            self._memory.cache.drop(conversation)
            # When something else was erased the lease is still ours, and would keep even us out.
            await self._memory.turns.hand_over(conversation, token)
            return Nothing("lost")
        except Parked as parked:
            log.warning("turn parked", pause_s=parked.pause_s)
            return Nothing("parked")
        except asyncio.CancelledError:
            await self._memory.turns.hand_over(conversation, token)
            await self._memory.mailbox.wake(conversation)
            await self._ready_queue.acknowledge(wake_up)
            raise

    async def _run_or_defer(self, turn: OpenTurn) -> Next:
        """Run a turn; where its person has enough under way, let it wait without a slot."""
        if not self._permits.take(turn):
            log.info("turn deferred", user=turn.entries[0].sender_id)
            await self._memory.turns.defer(turn.lease, _DEFERRED_MS)
            return Nothing("deferred")
        try:
            return await self._run(turn)
        finally:
            await self._permits.end(turn.lease.conversation)

    async def _run(self, turn: OpenTurn) -> Next:
        """Run a turn; one that fails is begun again, and in the end set aside by its runner."""
        try:
            return (await self._keep_alive(turn)).then
        except (LeaseLost, Parked, StoreError):
            raise
        except Exception as error:  # noqa: BLE001 - the outer fence of a turn, which is logged
            try:
                await self._memory.turns.note_failure(turn, type(error).__name__)
            finally:
                log.exception("turn failed", exc_info=error)
            return Nothing("failed")

    async def _keep_alive(self, turn: OpenTurn) -> Committed:
        """Run a turn while its lease is renewed; end it at once when that is lost.

        But not while it is being closed, and after: a commit may take the lease with it.
        """
        running = asyncio.create_task(self._runner.run(turn))
        renewing = asyncio.create_task(self._keep_lease(turn.lease))
        try:
            await asyncio.wait({running, renewing}, return_when=asyncio.FIRST_COMPLETED)
            if not running.done() and not turn.committing.is_set():
                await renewing
            return await running
        finally:
            await _end(running, renewing)

    async def _keep_lease(self, lease: Lease) -> NoReturn:
        """Extend a lease again and again; raise `LeaseLost` once it is gone."""
        loop = asyncio.get_running_loop()
        renewed = loop.time()
        while True:
            await asyncio.sleep(self._lease_s / _RENEWALS)
            try:
                await self._memory.turns.renew(lease)
                renewed = loop.time()
            except StoreError:
                if loop.time() - renewed > self._lease_s:
                    raise LeaseLost(lease.conversation.tag) from None

    async def _keep_wake_up(self, wake_up: WakeUp) -> None:
        """Keep a bell from being reclaimed while it is served, over all the turns it takes."""
        is_ours = True
        while is_ours:
            await asyncio.sleep(self._lease_s / _RENEWALS)
            with suppress(StoreError):
                is_ours = await self._ready_queue.renew(wake_up)


async def _end(*tasks: "asyncio.Task[Any]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _give_up() -> NoReturn:
    raise asyncio.CancelledError
