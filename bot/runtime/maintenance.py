"""Periodic work beside turns: checks of Redis, sweeps, due turns, jobs, learning that was missed.

Every task has one owner, and stopping waits for it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import structlog

from bot.costs import NOTED_S
from bot.feature import Services
from bot.runtime.background_learner import BackgroundLearner
from bot.runtime.process import GarbageWatch, watch_loop
from bot.telegram.errors import FloodWait, TelegramError
from memory.behaviors.context import CallContext, Person
from memory.erasure.jobs import FinishedJob
from memory.memory import Memory
from memory.queue.ready_queue import ReadyQueue, WakeUp
from memory.store.client import RedisClient
from memory.store.embedded import rewrite_file
from memory.store.errors import LeaseLost, StoreError
from memory.store.keys import Scope
from memory.store.store import JOBS

log = structlog.get_logger(__name__)

MAX_CLOCK_S = 30  # beyond so many seconds what people are told about times is wrong
_POSTPONED_S = 2.0  # when a step is tried again for which Redis was not available

Step = Callable[[], Awaitable[float | None]]
"""Returns after how many seconds it has to run again at the latest, None if it does not matter."""


async def repeat(
    step: Step, name: str, every_s: float, sooner: asyncio.Event | None = None
) -> None:
    """Run a step every `every_s` seconds until cancelled, whether it fails or not.

    It runs earlier if it returned a shorter time, or once `sooner` is set. `name` stands
    for it in the log, which has an error of Redis that comes again and again once.
    """
    sooner, reason = sooner or asyncio.Event(), ""
    while True:
        wait_s, before, reason = None, reason, ""
        try:
            wait_s = await step()
        except StoreError as error:
            wait_s, reason = _POSTPONED_S, type(error).__name__
            if reason != before:
                log.warning("periodic step postponed", step=name, reason=reason)
        except Exception:  # the outer fence: the next run may succeed
            log.exception("periodic step failed", step=name)
        with suppress(TimeoutError):
            async with asyncio.timeout(every_s if wait_s is None else min(every_s, wait_s)):
                await sooner.wait()
        sooner.clear()


async def watch_clock(client: RedisClient) -> None:
    """Warn if this machine and Redis differ in time; raise `StoreError`."""
    ahead_s = await client.clock_ahead_s()
    if abs(ahead_s) > MAX_CLOCK_S:
        log.warning("clock differs from Redis", redis_ahead_s=round(ahead_s), look_at="NTP")


def watches(services: Services) -> list[Coroutine[Any, Any, None]]:
    """Return what runs all the time in every process, beside the tasks of features."""
    memory = services.memory
    drop_removed = partial(services.admission.drop_removed, memory.mailbox)

    running = [
        repeat(memory.capacity.check, "capacity", every_s=5.0),
        # So soon after an erasure, or a change of who may use the bot, the other processes know it.
        repeat(memory.scopes.drop_erased, "erasures", every_s=1.0),
        repeat(drop_removed, "access", every_s=2.0),
        repeat(memory.scopes.drop_lost, "restarts", every_s=2.0),
        repeat(partial(watch_clock, memory.client), "clock", every_s=300.0),
        watch_loop(GarbageWatch()),
    ]
    if services.settings.redis_url is None:
        # It also runs at the start, because the process may have crashed behind an erasure, and
        # daily, because data expires.
        rewrite = partial(rewrite_file, memory.client)
        running.append(repeat(rewrite, "rewrite", every_s=86_400.0, sooner=memory.store.erased))
    return running


_DUE_EVERY_S = 5.0
_JOBS_EVERY_S = 15.0
_NEXT_JOB_S = 1.0
_SWEEP_EVERY_S = 60.0
_PEOPLE_EVERY_S = 86_400.0
_SWEEPER_LEASE_MS = 90_000
_LEARN_EVERY_S, _MORE_LATE_S = 10.0, 0.5
_MAX_LATE_LEARNING = 4
_JOB_IDLE_MS = 60_000


@dataclass(eq=False)
class Maintenance:
    """Keeps the promises that no turn keeps: no message, job or learning is left behind.

    `report` is called with each job that is finished; if it raises `TelegramError`, it is called
    again later. `deleting` is called with each conversation before a job erases it.
    """

    memory: Memory
    learner: BackgroundLearner
    report: Callable[[FinishedJob], Awaitable[None]]
    deleting: Callable[[CallContext], Awaitable[None]]
    _swept_everything: bool = field(default=False, init=False)
    _people_due: float = field(default=0, init=False)
    _late: set[Scope] = field(default_factory=set, init=False)  # being learned

    def __post_init__(self) -> None:
        memory = self.memory
        self._ready_queue = memory.ready_queue()
        self._job_queue = ReadyQueue(memory.client, memory.scripts, memory.keys.jobs)
        self._sweeper = memory.store.lease(memory.keys.sweeper, _SWEEPER_LEASE_MS)

    async def run(self) -> None:
        """Run all loops until cancelled."""
        steps = (
            (self.memory.sweep.wake_due, _DUE_EVERY_S, None),
            (self._sweep, _SWEEP_EVERY_S, None),
            (self._learn_late, _LEARN_EVERY_S, None),
            (self._serve_jobs, _JOBS_EVERY_S, self.memory.scopes.noted[JOBS]),
        )
        async with asyncio.TaskGroup() as group:
            for step, *times in steps:
                group.create_task(repeat(self._noting_outages(step), step.__name__, *times))

    def _noting_outages(self, step: Step) -> Step:
        """Return `step`; after the store was away all is swept, because wake-ups may be lost."""

        async def run() -> float | None:
            try:
                return await step()
            except StoreError:
                self._swept_everything = False
                raise

        return run

    async def _sweep(self) -> None:
        """Sweep: one process at a time sweeps the recent conversations.

        Each process sweeps all conversations at its start and after Redis was away.
        """
        everything, self._swept_everything = not self._swept_everything, True
        if not await self._sweeper.hold() and not everything:
            return
        woken = await self.memory.sweep.wake_waiting(everything=everything)
        await self.memory.sweep.prune()
        await self.memory.usage.count_noted(2 * NOTED_S)  # of processes that died
        if time.monotonic() >= self._people_due:
            self._people_due = time.monotonic() + _PEOPLE_EVERY_S
            if expired := await self.memory.sweep.prune_people():
                log.info("expired conversations of people removed", conversations=expired)
        for queue in (self._ready_queue, self._job_queue):
            await queue.remove_consumers()
        if woken:
            log.info("conversations woken again", conversations=woken)

    async def _learn_late(self) -> float | None:
        """Learn what is late, a few at a time: at midnight all is late that waited for a quota."""
        self._late = {each for each in self._late if each in self.learner.running}
        room = _MAX_LATE_LEARNING - len(self._late)
        for conversation in await self.memory.sweep.take_late_learning(room):
            self.learner.learn(conversation)
            self._late.add(conversation)  # a long one is due again each minute, and counts once
        return _MORE_LATE_S if self._late else None

    async def _serve_jobs(self) -> float | None:
        """Run one job; return when to look for another one, None if there was none."""
        queue = self._job_queue
        wake_ups = await queue.reclaim(1, _JOB_IDLE_MS) or await queue.read(1, 1)
        for wake_up in wake_ups:
            with suppress(LeaseLost):  # another worker runs the job
                await self._serve_job(wake_up)
        return _NEXT_JOB_S if wake_ups else None

    async def _serve_job(self, wake_up: WakeUp) -> None:
        async def before_erasure(conversation: Scope) -> None:
            """Announce that the job erases a conversation; it acts for no person in it."""
            await self.deleting(CallContext(conversation, Person(), time.time()))

        finished = await self.memory.jobs.run_job(wake_up.tag, before_erasure)
        if finished is not None:
            log.info(
                "job finished",
                kind=finished.job.kind,
                conversations=finished.conversations,
                messages=finished.receipt.messages,
            )
            try:
                await self.report(finished)
            except TelegramError as error:
                # The wake-up is reclaimed: at the end of a ban, or in a minute.
                log.warning("receipt postponed", reason=type(error).__name__)
                if isinstance(error, FloodWait):
                    wait_ms = int(error.retry_after_s * 1000)
                    await self._job_queue.postpone(wake_up, wait_ms, _JOB_IDLE_MS)
                return
            await self.memory.jobs.mark_reported(wake_up.tag)
        await self._job_queue.acknowledge(wake_up)
