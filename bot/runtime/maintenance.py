"""Background work beside turns: sweeps, parked turns, jobs, learning after the reply.

Every task has one owner here, and stopping waits for it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict

import structlog

from bot.metrics.usage_counter import billed_to
from bot.model.model_errors import reason_of
from bot.telegram.errors import FloodWait, TelegramError
from memory.behaviors.call_context import CallContext, Person
from memory.erasure.jobs import Finished, JobBusy
from memory.learning.learner import LearnerBusy
from memory.limits.usage import NOBODY
from memory.memory import Memory
from memory.queue.ready_queue import WakeUp
from memory.search.embeddings import EmbeddingsUnavailable
from memory.store.errors import StoreError
from memory.store.keys import Scope
from memory.text.internal_model import InternalModelUnavailable

log = structlog.get_logger(__name__)

_DUE_EVERY_S = 1.0
_SWEEP_EVERY_S = 60.0
_SWEEPER_LEASE_MS = 90_000
_LEARN_EVERY_S = 5.0
_JOB_IDLE_MS = 60_000
_LEARNERS = 4


class Learner:
    """Learns after replies, a few conversations at once, each at most once at a time."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._places = asyncio.Semaphore(_LEARNERS)
        self._running: dict[Scope, asyncio.Task[None]] = {}
        self._again: set[Scope] = set()

    def learn(self, conversation: Scope) -> None:
        """Have a conversation learned soon; returns at once."""
        if conversation in self._running:
            self._again.add(conversation)
            return
        task = asyncio.create_task(self._learn(conversation), name=f"learn {conversation.tag}")
        self._running[conversation] = task

    async def stop(self, grace_s: float) -> None:
        """Let running learning finish within `grace_s`; the rest is caught up later."""
        running = list(self._running.values())
        if running:
            await asyncio.wait(running, timeout=grace_s)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _learn(self, conversation: Scope) -> None:
        try:
            while True:
                self._again.discard(conversation)
                await self._round(conversation)
                if conversation not in self._again:
                    break
        finally:
            del self._running[conversation]

    async def _round(self, conversation: Scope) -> None:
        try:
            async with self._places:
                with billed_to(conversation, _learned_for(conversation)):
                    progress = await self._memory.learn(conversation)
            log.info("learned", conversation=conversation.tag, **asdict(progress))
        except (
            EmbeddingsUnavailable,
            InternalModelUnavailable,
            LearnerBusy,
            StoreError,
        ) as error:
            _report_postponed(conversation, error)
        except Exception:
            log.exception("learning failed", conversation=conversation.tag)


def _report_postponed(conversation: Scope, error: Exception) -> None:
    """Log why; that a model rests was said when the rest began."""
    rests = isinstance(error, EmbeddingsUnavailable | InternalModelUnavailable) and error.rests_s
    is_embedding = isinstance(error, EmbeddingsUnavailable)
    setting = "OPENAI_EMBEDDING_MODEL" if is_embedding else "OPENAI_MEMORY_MODEL"
    report = log.info if rests else log.warning
    report("learning postponed", conversation=conversation.tag, **reason_of(error, setting))


def _learned_for(conversation: Scope) -> int:
    """Return whom learning is billed to: the person of a private chat; in a group nobody."""
    return conversation.chat_id if conversation.is_private else NOBODY


class Maintenance:
    """The loops that keep promises which no turn keeps.

    `report` hears of a job that is done, later once more when it raises `TelegramError`; `deleting`
    hears of a conversation before a job erases it.
    """

    def __init__(
        self,
        memory: Memory,
        learner: Learner,
        report: Callable[[Finished], Awaitable[None]],
        deleting: Callable[[CallContext], Awaitable[None]],
    ) -> None:
        self._memory = memory
        self._learner = learner
        self._deleting = deleting
        self._report = report
        self._turn_wake_up = memory.ready_queue()
        self._job_queue = memory.job_queue()
        self._sweeper = memory.sweeper_lease(_SWEEPER_LEASE_MS)
        self._swept_everything = False

    async def run(self) -> None:
        """Run all loops until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._every(_DUE_EVERY_S, self._wake_due))
            group.create_task(self._every(_SWEEP_EVERY_S, self._sweep))
            group.create_task(self._every(_LEARN_EVERY_S, self._learn_late))
            group.create_task(self._every(_DUE_EVERY_S, self._serve_jobs))

    async def _every(self, pause_s: float, step: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self._once(step)
            await asyncio.sleep(pause_s)

    async def _once(self, step: Callable[[], Awaitable[None]]) -> None:
        try:
            await step()
        except StoreError as error:
            # After a store that was away, bells may be missing.
            self._swept_everything = False
            log.warning("upkeep postponed", step=step.__name__, reason=type(error).__name__)
        except Exception:
            log.exception("upkeep failed", step=step.__name__)

    async def _wake_due(self) -> None:
        await self._memory.sweep.wake_due()

    async def _sweep(self) -> None:
        """One process walks what is recent; everything, each that was without Redis."""
        everything, self._swept_everything = not self._swept_everything, True
        if not await self._sweeper.hold() and not everything:
            return
        woken = await self._memory.sweep.wake_waiting(everything=everything)
        await self._memory.sweep.prune()
        for wake_up in (self._turn_wake_up, self._job_queue):
            await wake_up.remove_consumers()
        if woken:
            log.info("rang again", conversations=woken)

    async def _learn_late(self) -> None:
        for conversation in await self._memory.sweep.take_late_learning(_LEARNERS):
            self._learner.learn(conversation)

    async def _serve_jobs(self) -> None:
        wake_ups = await self._job_queue.reclaim(1, _JOB_IDLE_MS) or await self._job_queue.read(
            1, 1
        )
        for wake_up in wake_ups:
            with suppress(JobBusy):
                await self._serve_job(wake_up)

    async def _serve_job(self, wake_up: WakeUp) -> None:
        finished = await self._memory.jobs.run(wake_up.tag, self._before)
        if finished is not None:
            log.info(
                "job finished",
                kind=finished.job.kind,
                conversations=finished.conversations,
                messages=finished.receipt.messages,
            )
            try:
                await self._report(finished)
            except TelegramError as error:
                await self._report_later(wake_up, error)
                return
            await self._memory.jobs.mark_reported(wake_up.tag)
        await self._job_queue.acknowledge(wake_up)

    async def _report_later(self, wake_up: WakeUp, error: TelegramError) -> None:
        """Leave the bell to whoever reclaims it: at the end of a ban, or in a minute."""
        log.warning("receipt postponed", reason=type(error).__name__)
        if isinstance(error, FloodWait):
            wait_ms = int(error.retry_after_s * 1000)
            await self._job_queue.postpone(wake_up, wait_ms, _JOB_IDLE_MS)

    async def _before(self, conversation: Scope) -> None:
        """Tell that a job is about to erase a conversation; it speaks for nobody in it."""
        await self._deleting(CallContext(conversation, Person(), time.time()))
