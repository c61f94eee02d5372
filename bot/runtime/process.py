"""What ties the bot to its process: the address of its Redis, a client of it, signals, the loop.

A thread watches the loop's thread from outside, because a blocked loop cannot watch itself.
"""

import asyncio
import ctypes
import gc
import math
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from traceback import walk_stack
from types import FrameType
from typing import Any

import structlog

from bot.model.openai_client import load_sdk
from bot.parsing.processes import memory_mb
from config.settings import Settings
from memory.memory import MemoryOptions
from memory.queue.turn_store import TurnTimes
from memory.search.embeddings import index_class
from memory.store.client import RedisClient
from memory.store.embedded import EmbeddedValkey, die_with_parent
from memory.store.tasks import end_tasks
from memory.text.tokens import encoding

log = structlog.get_logger(__name__)

MAX_BLOCKED_S = 0.1
_LOOK_EVERY_S = MAX_BLOCKED_S / 2
_FRAMES = 3
"""Innermost frames that are logged; only their files and functions, never their variables."""


async def watch_loop(garbage: "GarbageWatch") -> None:
    """Log a warning each time the running loop was blocked, and collect garbage, until cancelled.

    A thread looks at the loop and at the memory, so a loop that has nothing to do is not woken.
    """
    loop, thread, stopped = asyncio.get_running_loop(), threading.get_ident(), threading.Event()
    # An idle uvloop stands in the frame that called us. An idle asyncio loop does not: we ask it.
    idle = sys._getframe(1)  # noqa: SLF001 - documented
    clock_of = getattr(time, "pthread_getcpuclockid", None)  # macOS and Windows have none

    def running() -> FrameType | None:
        return sys._current_frames().get(thread)  # noqa: SLF001 - documented

    def cpu_s() -> float:
        return time.clock_gettime(clock_of(thread)) if clock_of else time.process_time()

    def watch() -> None:
        while not stopped.is_set():
            began, worked_s = time.monotonic(), cpu_s()
            stopped.wait(_LOOK_EVERY_S)
            if running() is idle and not garbage.is_due():
                continue
            answered, frames = threading.Event(), _names(running())
            loop.call_soon_threadsafe(answered.set)
            # If code held Python's lock, this thread woke late, and has the right frames already.
            if time.monotonic() - began < MAX_BLOCKED_S and not answered.wait(_LOOK_EVERY_S):
                frames = _names(running())
            while not (answered.wait(_LOOK_EVERY_S) or stopped.is_set()):
                pass
            blocked_ms = round((time.monotonic() - began - _LOOK_EVERY_S) * 1000)
            cpu_ms = round((cpu_s() - worked_s) * 1000)
            if blocked_ms > MAX_BLOCKED_S * 1000 and not stopped.is_set():
                # Much less CPU time than time: the machine is busy, our code is not slow.
                log.warning("event loop blocked", ms=blocked_ms, cpu_ms=cpu_ms, frames=frames)
            if garbage.is_due():
                loop.call_soon_threadsafe(garbage.collect)

    watching = threading.Thread(target=watch, name="loop watchdog", daemon=True)
    watching.start()
    try:
        await asyncio.Event().wait()
    finally:
        stopped.set()
        watching.join()


def _names(frame: FrameType | None) -> str:
    codes = [each.f_code for each, _ in islice(walk_stack(frame), _FRAMES)]
    return " < ".join(f"{'/'.join(c.co_filename.split('/')[-2:])}:{c.co_qualname}" for c in codes)


_THREADS = 2
"""For long computations, such as indexing a cold conversation. More threads would make the process
larger, because the system's allocator keeps freed memory apart for each thread."""
_THREAD_TURN_S = 0.0005
"""How long a thread that renders or indexes a long text may keep the event loop waiting.

Python's default is ten times as long, and an answer needs many iterations of the loop.
"""
_COLLECT_AFTER = 10_000
"""New objects after which the garbage collector runs. With Python's default of 700, a long
conversation is read a tenth slower: that makes many objects and leaves no garbage."""
_STOP_WITHIN_S = 22.0
"""Platforms kill a process 30 s after they asked it to stop. Turns that have not ended are taken up
by another process."""
_MAX_NAMED = 20
_M_MMAP_THRESHOLD, _LARGE_BYTES = -3, 2**20
"""glibc gives larger pieces of memory back as soon as they are free. By default it would soon keep
pieces of up to 32 MB, because a file of that size was freed before."""
_M_TRIM_THRESHOLD, _KEPT_BYTES = -1, 4 * 2**20
"""It keeps this much free memory. With its default of 128 kB, a search of a long conversation asks
for the same memory again and again, and the kernel clears each page: a third of its CPU."""
_GROWN_BYTES = 32 * 2**20
_PAGE_BYTES = 4096
_COLLECT_AGAIN_S = 5.0  # what was in use at first may be garbage then
_CACHE_BYTES = 64 * 2**20
"""For conversations and memories that a process keeps because they may be needed again."""
_CONVERSATION_SHARE = 16
"""In each process a conversation takes at most a sixteenth of the machine's memory, or three
quarters of the cache if that is more."""
_MAX_FILES = 65_536
_REPLACE_AFTER_S = 1


@dataclass(frozen=True, slots=True)
class Duty:
    """The work of a process: take updates in and serve pages, run turns and learn, or both."""

    takes_in: bool = True
    works: bool = True


EVERYTHING = Duty()
WEB = Duty(works=False)
WORKER = Duty(takes_in=False)


def tune_interpreter() -> None:
    """Let threads take turns often, and collect garbage of what is made from now on."""
    sys.setswitchinterval(_THREAD_TURN_S)
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)
    gc.enable()
    if sys.platform == "linux":
        with suppress(AttributeError):  # not every C library has this call
            for limit in ((_M_MMAP_THRESHOLD, _LARGE_BYTES), (_M_TRIM_THRESHOLD, _KEPT_BYTES)):
                ctypes.CDLL(None).mallopt(*limit)


class GarbageWatch:
    """Collects garbage when the process has grown (Linux only), and once more a little later.

    Python itself does so after so many new objects, and a few of them may hold files of 20 MB. The
    allocator then gives back what is free between pieces that are in use.
    """

    def __init__(self) -> None:
        gc.freeze()  # what a start has made is no garbage
        self._statm = -1
        with suppress(OSError):
            self._statm = os.open("/proc/self/statm", os.O_RDONLY)
        self._used_bytes = self._resident_bytes()
        self._again_at = math.inf

    def is_due(self) -> bool:
        """Return whether there may be much garbage."""
        resident_bytes = self._resident_bytes()
        self._used_bytes = min(self._used_bytes, resident_bytes)  # growth is from the least
        return resident_bytes > self._used_bytes + _GROWN_BYTES or time.monotonic() > self._again_at

    def collect(self) -> None:
        """Collect garbage; after growth it is due once more."""
        is_again = time.monotonic() > self._again_at
        gc.collect()
        with suppress(AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
        self._used_bytes = self._resident_bytes()
        self._again_at = math.inf if is_again else time.monotonic() + _COLLECT_AGAIN_S

    def _resident_bytes(self) -> int:
        """Return the memory of this process without pages of files, which the kernel may drop."""
        if self._statm < 0:
            return 0
        _, resident, of_files, *_ = map(int, os.pread(self._statm, 99, 0).split())
        return (resident - of_files) * _PAGE_BYTES


@contextmanager
def redis_address(settings: Settings) -> Iterator[str]:
    """Give the address of the operator's Redis, or of an embedded Valkey while the block lasts.

    It blocks, so use it outside the event loop. Raise `EmbeddedError`.
    """
    if settings.redis_url is not None:
        yield settings.redis_url.get_secret_value()
        return
    if settings.platform:
        log.warning("no REDIS_URL: this platform's disk is lost with every deploy")
    embedded = EmbeddedValkey(settings.data_dir)
    address = embedded.start()
    try:
        yield address
    finally:
        embedded.stop()


@asynccontextmanager
async def open_store(
    address: str, settings: Settings, max_connections: int = 0
) -> AsyncIterator[RedisClient]:
    """Give a client of Redis while the block lasts; raise `StoreError`.

    0 connections stand for `REDIS_MAX_CONNECTIONS`.
    """
    client = await RedisClient.open(
        address,
        max_connections=max_connections or settings.redis_max_connections,
        tls_verify=settings.verifies_redis_tls,
    )
    try:
        yield client
    finally:
        await client.close()


def memory_options(settings: Settings) -> MemoryOptions:
    """Return how much the operator wants remembered, and how turns are timed."""
    return MemoryOptions(
        ttl_s=settings.memory_ttl_days * 86_400,
        tail=2 * settings.window_messages,
        cache_bytes=_CACHE_BYTES,
        conversation_bytes=max(_CACHE_BYTES * 3 // 4, memory_mb() * 2**20 // _CONVERSATION_SHARE),
        times=TurnTimes(int(settings.lease_s * 1000), int(settings.coalesce_s * 1000)),
        redis_bytes=settings.redis_memory_mb * 2**20,
        wait_replicas=settings.intake_wait_replicas,
        zone=settings.timezone,
        shares_groups=settings.sends_per_second > 0,
    )


def run_forked(count: int, serve: Callable[[int], int]) -> int:
    """Fork processes that share the memory of all that is imported; return when all have ended.

    Each calls `serve` with its number, from 0 on, and ends with the status that it returns. A
    process that ends is replaced. If its status is above 0, all are stopped, and it is returned.
    """
    asyncio.run(load_sdk())
    index_class()
    encoding()
    gc.freeze()  # the collector writes to objects, so the kernel would copy their pages
    signal.signal(signal.SIGCHLD, lambda *_: None)  # without a handler `sigwait` may miss it
    awaited = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)

    def fork(number: int) -> int:
        die, child_pid = die_with_parent(), os.fork()
        if child_pid == 0:
            if die:
                die()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, awaited)
            sys.exit(serve(number))
        return child_pid

    had_terminal = os.isatty(0)
    running = {fork(number): number for number in range(count)}
    is_stopping, status = False, 0
    while running:
        received = signal.sigwait(awaited)
        if received == signal.SIGCHLD:
            ended = dict(_ended(running))
            if is_stopping or not ended:
                continue
            status = max(0, *ended.values())
            if not status:
                log.error("processes ended and are replaced", statuses=ended)
                time.sleep(_REPLACE_AFTER_S)
                running |= {fork(number): number for number in ended}
                continue
        is_reload = received == signal.SIGHUP and os.isatty(0) == had_terminal
        is_stopping |= not is_reload
        for pid in running:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGHUP if is_reload else signal.SIGTERM)
    return status


def _ended(running: dict[int, int]) -> Iterator[tuple[int, int]]:
    """Remove the processes that have ended; give the number and the exit status of each."""
    for pid in [*running]:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            yield running.pop(pid), os.waitstatus_to_exitcode(status)


def raise_file_limit() -> None:
    """Raise the limit of open files and connections, up to `_MAX_FILES`.

    Many systems start a process with 1,024, which clients of the web port could use up.
    """
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415 - Windows has none

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_FILES)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def run_until_signal(run: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    """Call `run` with an event that SIGTERM and SIGINT set.

    If the process has not ended `_STOP_WITHIN_S` later, it logs what it waits for, and ends.
    """
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if not stopping.is_set():
            late = threading.Timer(_STOP_WITHIN_S, _end_late, (loop,))
            late.daemon = True
            late.start()
        stopping.set()

    loop.set_default_executor(ThreadPoolExecutor(_THREADS))
    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError):  # on Windows Ctrl-C cancels instead
            loop.add_signal_handler(number, stop)
    await run(stopping)


def _end_late(loop: asyncio.AbstractEventLoop) -> None:
    tasks = sorted(f"{task.get_coro()}".split(" at 0x")[0] for task in asyncio.all_tasks(loop))
    threads = sorted(frame.f_code.co_qualname for frame in sys._current_frames().values())  # noqa: SLF001
    log.warning("stopped late", tasks=tasks[:_MAX_NAMED], threads=threads[:_MAX_NAMED])
    os._exit(0)


def run_loop(main: Coroutine[object, object, None]) -> None:
    """Run `main` on uvloop, or on asyncio's own loop if uvloop is missing, as on Windows."""
    try:
        import uvloop  # noqa: PLC0415
    except ModuleNotFoundError:
        asyncio.run(main)
    else:
        uvloop.run(main)


async def is_done_before(stopping: asyncio.Event, task: "asyncio.Task[Any]") -> bool:
    """Wait for a task; return false, with the task cancelled, if the process stops before."""
    stop = asyncio.create_task(stopping.wait())
    await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    is_done = task.done()
    if not is_done:
        await end_tasks([task])
    return is_done
