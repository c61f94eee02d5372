"""A simulated process, which may die or be stopped at any call to the outside.

A dead process still runs code, for example `finally` blocks, but none of its calls arrive.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any

from tests.lab.simulator.loop import NumberedTask, VirtualLoop

_CURRENT: "ContextVar[Process | None]" = ContextVar("process", default=None)


class Died(BaseException):
    """Raised in the code that a dead process still runs; no `except Exception` catches it."""


class Process:
    """One start of a bot; its tasks end together. `note` is told what happens to it."""

    def __init__(self, name: str, loop: VirtualLoop, note: Callable[[str, str], None]) -> None:
        self.name = name
        self.is_dead = False
        self._loop = loop
        self._note = note
        self._resumes_at = 0.0
        self._tasks: dict[NumberedTask, None] = {}

    def start(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Run something as a part of this process."""
        context = copy_context()
        context.run(_CURRENT.set, self)
        return self._loop.create_task(work, context=context)

    async def travel(self, seconds: float) -> None:
        """Wait while a call is on its way, longer if the process is stopped meanwhile."""
        self.check()
        await self._loop.pass_time(seconds)
        while self._resumes_at > self._loop.now:
            await self._loop.after(self._resumes_at - self._loop.now)
        self.check()

    def check(self) -> None:
        """Raise `Died` in a dead process."""
        if self.is_dead:
            raise Died

    def pause(self, seconds: float) -> None:
        """Stop it as SIGSTOP would: its calls continue only afterwards."""
        self._note(self.name, f"is stopped for {seconds:.2f} s")
        self._resumes_at = max(self._resumes_at, self._loop.now + seconds)

    def crash(self) -> None:
        """End it at once; from now on nothing that it does has an effect."""
        if not self.is_dead:
            self._note(self.name, "dies")
        self.end()

    def end(self) -> None:
        """End its tasks without a note."""
        self.is_dead = True
        for task in list(self._tasks):
            task.cancel()

    def owns(self, task: NumberedTask) -> None:
        """Keep a task until it is done."""
        self._tasks[task] = None
        task.add_done_callback(self._forget)

    def _forget(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.pop(task, None)  # type: ignore[call-overload]  # all our tasks are numbered
        if not task.cancelled():
            task.exception()  # otherwise asyncio logs an error of a dead process


def adopt(task: NumberedTask, context: Context | None) -> None:
    """Give a new task to the process that made it."""
    process = _CURRENT.get() if context is None else context.get(_CURRENT)
    if process is not None:
        process.owns(task)
