"""The event loop of a schedule, which never waits, and the processes that run on it.

It has only what schedules use: tasks, futures and timers, but no sockets and no threads. The same
seed gives the same run. A process may die or be stopped at any call to the outside. A dead process
still runs code, for example `finally` blocks, but none of its calls arrive.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from heapq import heappop, heappush
from typing import Any, TypeVar

BEGAN = 1_767_603_600  # when every schedule begins: 5 January 2026, 09:00 UTC

T = TypeVar("T")
_Call = tuple[Callable[..., object], tuple[Any, ...], Context]
_CURRENT: "ContextVar[Process | None]" = ContextVar("process", default=None)


class Handle(list[_Call]):
    """The call to make, or nothing once cancelled. It is a list because a list is made fast."""

    __slots__ = ()

    cancel = list[_Call].clear

    def cancelled(self) -> bool:
        return not self


class NumberedTask(asyncio.Task[Any]):
    """A task whose order in a set does not depend on its address in memory."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], number: int, **kwargs: Any) -> None:
        self.number = number
        super().__init__(coroutine, **kwargs)

    def __hash__(self) -> int:
        return self.number


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop that never waits: it jumps to the next timer. A process owns its tasks."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self._ready: deque[Handle] = deque()
        self._timers: list[tuple[float, int, Handle | asyncio.Future[None]]] = []
        self._timers_made = 0
        self._tasks_made = 0
        self.set_task_factory(self._make_task)  # type: ignore[arg-type]  # stubs want a generic one

    def time(self) -> float:
        return self.now

    def unix_ms(self) -> int:
        """Return the time of day in milliseconds."""
        return int((BEGAN + self.now) * 1000)

    def get_debug(self) -> bool:
        return False

    async def pass_time(self, seconds: float) -> None:
        """Sleep; if nothing else can happen meanwhile, advance the time without a timer."""
        until = self.now + seconds
        if self._ready or (self._timers and self._timers[0][0] <= until):
            await self.after(seconds)
        else:
            self.now = until

    def after(self, seconds: float) -> "asyncio.Future[None]":
        """Return a future that is done after so many seconds."""
        passed = self.create_future()
        self._timers_made += 1
        heappush(self._timers, (self.now + seconds, self._timers_made, passed))
        return passed

    def call_soon(  # type: ignore[override]  # our handles can do what is asked of one
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Handle:
        handle = Handle(((callback, args, context or copy_context()),))
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]  # there is one thread

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> Handle:
        return self.call_at(self.now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> Handle:
        handle = Handle(((callback, args, context or copy_context()),))
        self._timers_made += 1
        heappush(self._timers, (when, self._timers_made, handle))
        return handle

    def _run_once(self) -> None:
        ready = self._ready
        if not ready:
            self._jump()
        for _ in range(len(ready)):
            for callback, args, context in ready.popleft():
                try:
                    context.run(callback, *args)
                except (KeyboardInterrupt, SystemExit):
                    raise
                except BaseException as error:  # noqa: BLE001 - as asyncio's own loop does
                    self.call_exception_handler({"message": "a call failed", "exception": error})

    def _jump(self) -> None:
        """Advance the time to the next timer that is still wanted."""
        while True:
            if not self._timers:
                raise RuntimeError("there is no task and no timer left")
            when, _, waiting = heappop(self._timers)
            self.now = max(self.now, when)
            if isinstance(waiting, asyncio.Future):
                if not waiting.done():
                    waiting.set_result(None)
                    return
            elif waiting:
                self._ready.append(waiting)
                return

    @classmethod
    def play(cls, scene: Coroutine[Any, Any, T]) -> T:
        """Run one scene in simulated time, from second 0 on."""
        loop = cls()
        try:
            return loop.run_until_complete(scene)
        finally:
            loop.close()

    def _make_task(
        self,
        _: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, Any],
        context: Context | None = None,
    ) -> NumberedTask:
        self._tasks_made += 1
        task = NumberedTask(coroutine, self._tasks_made, loop=self, context=context)
        process = _CURRENT.get() if context is None else context.get(_CURRENT)
        if process is not None:
            process.owns(task)
        return task


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
