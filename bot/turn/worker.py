"""Reads wake-ups, and works on conversations: takes a lease, runs the turns, returns the lease.

The lease decides. A run that loses it is cancelled, unless it is committing or parking. The next
worker with the lease goes on with the turn. A run also ends if the person stops it, or if further
messages belong to its turn, which then begins again with them.

One conversation is worked on by one worker at a time. Conversations run beside each other, as far
as slots and permits allow.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import NoReturn

import structlog

from bot.turn.deliver import Parked
from bot.turn.permits import Permits
from bot.turn.turn import is_given_up
from memory.queue import open_turn
from memory.queue.open_turn import Committed, Interrupted, NoTurn, OpenTurn
from memory.queue.ready_queue import ReadyQueue, WakeUp
from memory.queue.turn_store import RENEWALS, TurnStore
from memory.scopes.history import Histories
from memory.search.embeddings import load_index
from memory.store.errors import LeaseLost, StoreError, StoreUnavailable
from memory.store.keys import Scope
from memory.store.tasks import end_tasks
from memory.text.tokens import TokenCounter

log = structlog.get_logger(__name__)

_PAUSE_S = 0.5
"""Pause after an error while reading wake-ups, and before a lease is given back after an outage. It
is also the first pause after a failed turn; each further failure doubles it."""
_MAX_BLOCK_S = 2.0
_RECLAIM_AFTER = 1.5
"""A wake-up is taken from a silent worker after this many leases.

A worker renews lease and wake-up separately, up to a third of a lease apart. So its lease is over
by then.
"""
_DEFERRED_MS = 15_000
"""After this a deferred turn is tried again, or earlier if another turn of the person ends."""
_GIVEN_BACK_MS = 2_000
"""After this a turn that only a newer release can read wakes up any free worker."""
_LEAVE_S = 2.0  # limit of the call that removes the consumer, which else counts for one more lease
_MAX_UNREADABLE = 1_000
"""Conversations that are remembered, so that the log has this warning once for each."""
Next = OpenTurn | NoTurn
RunTurn = Callable[[OpenTurn], Awaitable[Committed]]
"""Answers, delivers and commits a turn; raises `LeaseLost`, `Interrupted`, `Parked`, `StoreError`.

The hooks after the commit may still run when the lease is over.
"""
MAX_CONCURRENT_TURNS = 32  # conversations that one process answers at once


@dataclass(slots=True, eq=False)
class TurnWorker:
    """Serves wake-ups of different conversations, at most `max_turns` at once."""

    ready_queue: ReadyQueue
    turns: TurnStore
    histories: Histories
    permits: Permits
    run_turn: RunTurn
    max_turns: int
    is_stopping: bool = False
    _serving: set[asyncio.Task[None]] = field(default_factory=set, init=False)
    _listening: list[asyncio.Task[None]] = field(default_factory=list, init=False)
    _last_reclaim: float = field(default=0.0, init=False)
    _unreadable: set[Scope] = field(default_factory=set, init=False)

    async def run(self) -> None:
        """Read wake-ups, at most as many as slots are free, until cancelled; then call `stop`."""
        # Other processes tell us at once what happens to the turns that run here.
        self._listening.append(asyncio.create_task(self.turns.signals.listen()))
        while True:
            free = self.max_turns - len(self._serving)
            if free <= 0:
                await asyncio.wait(self._serving, return_when=asyncio.FIRST_COMPLETED)
                continue
            for wake_up in await self._read(free):
                task = asyncio.create_task(self._serve(wake_up), name=f"turn {wake_up.tag}")
                self._serving.add(task)
                task.add_done_callback(self._serving.discard)

    async def stop(self, grace_s: float) -> None:
        """Let running turns finish within `grace_s`; hand over the rest. Cancel `run` before.

        The other workers then share the send rate without this one.
        """
        self.is_stopping = True
        await end_tasks(self._serving, grace_s)
        await end_tasks(self._listening)
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(_LEAVE_S):
                await self.ready_queue.leave()

    async def _read(self, max_count: int) -> list[WakeUp]:
        """Wait for wake-ups, those of silent workers first; return none after a while."""
        lease_s, now = self.turns.lease_s, asyncio.get_running_loop().time()
        try:
            if now - self._last_reclaim >= lease_s / RENEWALS:
                self._last_reclaim = now
                idle_ms = int(lease_s * _RECLAIM_AFTER * 1000)
                if reclaimed := await self.ready_queue.reclaim(max_count, idle_ms):
                    return reclaimed
            block_ms = int(min(_MAX_BLOCK_S, lease_s / RENEWALS) * 1000)
            return await self.ready_queue.read(max_count, block_ms)
        except StoreError as error:
            log.warning("store unavailable", reason=type(error).__name__, detail=str(error))
        except Exception:  # the outer fence: a worker that reads no wake-ups is worse
            log.exception("wake-ups not read")
        await asyncio.sleep(_PAUSE_S)
        return []

    async def _serve(self, wake_up: WakeUp) -> None:
        """Serve one wake-up; if anything goes wrong, messages and wake-up stay."""

        async def keep_wake_up() -> None:
            """Keep the wake-up from being reclaimed, over all the turns that it takes."""
            is_ours = True
            while is_ours:
                await asyncio.sleep(self.turns.lease_s / RENEWALS)
                with suppress(StoreError):
                    is_ours = await self.ready_queue.renew(wake_up)

        beside = [asyncio.create_task(keep_wake_up())]
        with structlog.contextvars.bound_contextvars(conversation=wake_up.tag):
            try:
                await TokenCounter.load()
                # It is imported while the turn is read: it uses memory that the load has freed.
                beside.append(asyncio.create_task(load_index()))
                ended = await self.run_turns(wake_up)
                # If the worker that holds the lease died, its own wake-up comes back to us. If it
                # was only paused, it may have lost that wake-up. Then ours must stay.
                pending = ended.wake_up if ended.why == "held" else None
                await self.ready_queue.acknowledge(wake_up, if_pending=pending)
            except StoreError as error:
                log.warning("turn interrupted", reason=type(error).__name__)
            except Exception:
                log.exception("wake-up not served")
            finally:
                await end_tasks(beside)

    async def run_turns(self, wake_up: WakeUp) -> NoTurn:
        """Run the turns of a conversation until none can run now; return why.

        A worker that is cancelled, or that is stopping, hands an open turn over. A stopping worker
        still ends a turn that a person stopped, because only it knows what they saw of it.
        If the store is away during the first attempt of a turn, the turn begins again when the
        store answers; a stopped one then still knows what was shown. The second time, and in a
        later attempt, `StoreUnavailable` is raised, and the turn waits until its lease ends.
        """
        conversation, resumed = Scope(wake_up.tag), None
        pauses_s = (_PAUSE_S * 2**failures for failures in count())
        with self.turns.signals.heard(conversation) as signal:
            while True:
                cursor = self.histories.cursor(conversation)
                step = await self.turns.acquire(conversation, cursor, "", wake_up.delivery)
                step = _with_shown(step, resumed) if resumed else step
                try:
                    while not isinstance(step, NoTurn):
                        opened = step
                        try:
                            step = await self._run(opened, wake_up, signal)
                        except StoreUnavailable:
                            if (resumed and opened.id == resumed.id) or opened.attempts > 1:
                                raise  # its lease ends, so the attempt counts
                            resumed = opened
                            step = await self._hand_over_after_outage(opened)
                except asyncio.CancelledError:
                    if not isinstance(step, NoTurn):  # another worker goes on with it
                        await self.turns.hand_over(step.lease)
                        await self.permits.wake(conversation)
                        await self.ready_queue.acknowledge(wake_up)
                    raise
                if step.why == "failed":
                    await asyncio.sleep(next(pauses_s))
                elif step.why != "lost":
                    return step

    async def _run(self, opened: OpenTurn, wake_up: WakeUp, signal: asyncio.Event) -> Next:
        """Run a turn, unless it has to be deferred; return what comes next.

        A failed turn is begun again. After too many failures it is given up. Raise
        `CancelledError` if this process is stopping and no person stopped the turn.
        """
        if self.is_stopping and not opened.is_stopped:
            raise asyncio.CancelledError  # this process begins no further turn
        conversation = opened.lease.conversation
        is_readable = opened.stored_format <= open_turn.FORMAT
        is_only_sent = bool(opened.outbox) or is_given_up(opened)
        if not (is_readable and self.permits.take(opened, is_only_sent=is_only_sent)):
            return await self._defer(opened)
        with structlog.contextvars.bound_contextvars(turn=opened.id):
            try:
                async with self._uninterrupted(opened, signal):
                    return (await self.run_turn(opened)).then
            except LeaseLost:
                log.info("lease lost")
                if self.histories.cursor(conversation).version == opened.loaded.version:
                    self.histories.scopes.drop(conversation)  # else it has followed an erasure
                # A revision may have begun another turn while we hold the lease: return it.
                await self.turns.hand_over(opened.lease)
                return NoTurn("lost")
            except Parked as parked:
                why = type(parked.__cause__).__name__
                log.warning("turn parked", reason=why, pause_s=parked.pause_s)
                return NoTurn("parked")
            except Interrupted as ended:
                log.info("run ended", why=ended.why)
                cursor, token = self.histories.cursor(conversation), opened.lease.token
                return (
                    replace(opened, is_stopped=True)
                    if ended.why == "stopped"
                    else await self.turns.acquire(conversation, cursor, token, wake_up.delivery)
                )
            except StoreError:
                raise
            except Exception as error:  # noqa: BLE001 - the outer fence of a turn, which is logged
                try:  # first: logging takes time, and the lease may end meanwhile
                    await self.turns.note_failure(opened, type(error).__name__)
                finally:
                    log.exception("turn failed", exc_info=error)
                return NoTurn("failed")
            finally:
                await self.permits.end(opened.run)

    async def _hand_over_after_outage(self, opened: OpenTurn) -> NoTurn:
        """Return the lease as soon as the store answers.

        The turn then gets a new fence, so that late commands of this run are refused. Raise
        `StoreUnavailable` if the store does not answer for the time of one lease.
        """
        loop, conversation = asyncio.get_running_loop(), opened.lease.conversation
        for scope in (conversation, conversation.facts_scope):
            self.histories.scopes.drop(scope)  # a failover may have lost what we have read
        ends_at = loop.time() + self.turns.lease_s
        while True:
            await asyncio.sleep(_PAUSE_S)
            try:
                await self.turns.hand_over(opened.lease)
            except StoreUnavailable:
                if self.is_stopping or loop.time() >= ends_at:
                    raise
            else:
                return NoTurn("lost")

    async def _defer(self, opened: OpenTurn) -> NoTurn:
        """Leave a turn for later, or one of a newer release to another worker."""
        conversation, pause_ms = opened.lease.conversation, _DEFERRED_MS
        if opened.stored_format <= open_turn.FORMAT:
            log.info("turn deferred", user=opened.entries[0].sender_id)
        else:
            pause_ms = _GIVEN_BACK_MS
            if conversation not in self._unreadable:
                if len(self._unreadable) >= _MAX_UNREADABLE:
                    self._unreadable.clear()
                self._unreadable.add(conversation)
                log.warning("turn of a newer release given back", version=opened.stored_format)
        await self.turns.hand_over(opened.lease, pause_ms)
        return NoTurn("deferred")

    @asynccontextmanager
    async def _uninterrupted(self, opened: OpenTurn, signal: asyncio.Event) -> AsyncIterator[None]:
        """Renew the lease while the block runs, and cancel the block when its run has to end.

        Raise `LeaseLost` or `Interrupted` then. A commit and a `park` are not cancelled: they give
        the lease back themselves, so only their own answer tells how they ended.
        """
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a turn runs in a task")
        why: LeaseLost | Interrupted | None = None
        cancellations = task.cancelling()

        async def keep() -> None:
            nonlocal why
            try:
                await self._keep_lease(opened, signal)
            except (LeaseLost, Interrupted) as error:
                if not opened.run.is_giving_back:
                    why, opened.run.is_ending = error, True
                    task.cancel()

        keeping = asyncio.create_task(keep())
        try:
            yield
        except BaseException:
            if why and task.uncancel() <= cancellations:  # nobody else has cancelled us
                raise why from None
            raise
        finally:
            await end_tasks([keeping])

    async def _keep_lease(self, opened: OpenTurn, signal: asyncio.Event) -> NoReturn:
        """Extend a lease again and again, at once after a signal.

        Raise `LeaseLost` once it is gone, and `Interrupted` once the run has to end.
        """
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.turns.lease_s / RENEWALS):
                    await signal.wait()
            signal.clear()
            was_shown = opened.run.shown is not None
            try:
                await self.turns.renew(opened)
            except Interrupted:
                if was_shown or opened.run.shown is None:
                    raise  # nothing was shown while we asked, so the answer holds
                signal.set()  # the first part was shown: ask again, the answer may be another now
            except StoreError:
                if asyncio.get_running_loop().time() - opened.run.renewed_at > self.turns.lease_s:
                    raise LeaseLost(opened.lease.conversation.tag) from None


def _with_shown(step: Next, before: OpenTurn) -> Next:
    """Return a stopped turn with what its run `before` had shown, unless something was erased."""
    if isinstance(step, NoTurn) or not step.is_stopped:
        return step
    if (step.id, step.loaded.version) != (before.id, before.loaded.version):
        return step
    before.run.is_giving_back, before.run.renewed_at = False, step.run.renewed_at
    return replace(step, run=before.run)
