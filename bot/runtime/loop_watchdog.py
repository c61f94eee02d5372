"""Logs what blocked the event loop: no message that is sent to us may stop it for everybody.

A thread watches the loop's thread from outside, because a blocked loop cannot watch itself.
"""

import asyncio
import sys
import threading
import time
from types import FrameType

import structlog

log = structlog.get_logger(__name__)

MAX_BLOCKED_S = 0.1
_FRAMES = 3
"""Innermost frames that are logged; only their files and functions, never their variables."""


class LoopWatchdog:
    """Watches the loop in which `run` is awaited; logs a warning each time it was blocked."""

    def __init__(self, max_blocked_s: float = MAX_BLOCKED_S) -> None:
        self._max_blocked_s = max_blocked_s
        self._beat_at = 0.0
        self._worked_s = 0.0
        self._stopped = threading.Event()
        self._frames = ""

    async def run(self) -> None:
        """Watch until cancelled."""
        self._beat_at, self._worked_s = time.monotonic(), time.thread_time()
        watching = threading.Thread(
            target=self._watch, args=(threading.get_ident(),), name="loop watchdog", daemon=True
        )
        watching.start()
        try:
            while True:
                await asyncio.sleep(self._max_blocked_s / 2)
                self._beat()
        finally:
            self._stopped.set()
            watching.join()

    def _beat(self) -> None:
        now, worked_s = time.monotonic(), time.thread_time()
        blocked_ms = round((now - self._beat_at - self._max_blocked_s / 2) * 1000)
        cpu_ms = round((worked_s - self._worked_s) * 1000)
        self._beat_at, self._worked_s = now, worked_s
        frames, self._frames = self._frames or "unknown", ""
        if blocked_ms > self._max_blocked_s * 1000:
            # Much less CPU time than time: the machine is busy, and no code of ours is slow.
            log.warning("event loop blocked", ms=blocked_ms, cpu_ms=cpu_ms, frames=frames)

    def _watch(self, thread: int) -> None:
        """Note what the loop runs while its beat is late; runs in a thread of its own."""
        while not self._stopped.wait(self._max_blocked_s / 2):
            if not self._frames and time.monotonic() - self._beat_at > self._max_blocked_s:
                self._frames = _names(sys._current_frames().get(thread))  # noqa: SLF001 - documented


def _names(frame: FrameType | None) -> str:
    """Return the innermost frames as `file:function`, the innermost first."""
    names: list[str] = []
    while frame is not None and len(names) < _FRAMES:
        code = frame.f_code
        names.append(f"{'/'.join(code.co_filename.split('/')[-2:])}:{code.co_qualname}")
        frame = frame.f_back
    return " < ".join(names)
